#include "web/job_events.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <expected>
#include <optional>

#include "async/attempt.h"
#include "async/deadline.h"
#include "model/job_event.h"

namespace nodepool::web {
namespace {

namespace json = boost::json;

constexpr Duration kTimeout = std::chrono::seconds(10);

std::string DecisionJson(const launcher::JobDecision& decision) {
  json::object body{{"is_kept", decision.is_kept},
                    {"node", decision.node.empty() ? json::value() : json::value(decision.node.value)},
                    {"message", decision.why}};
  return json::serialize(body);
}

// The refusal of a request that may not report jobs; none: it may.
Task<std::optional<Response>> Refusal(Access& access, const Request& request) {
  if (access.IsOfThisHost(request)) {
    request.prove("this host");
    co_return std::nullopt;
  }
  if (!request.is_from_this_host || access.trusts_this_host())
    co_return ErrorResponse(request, 403, "Events of jobs are taken from this host only.");
  std::expected<Caller, Response> caller = co_await access.Identify(request);
  if (!caller) co_return std::move(caller.error());
  if (caller->may(config::Scope::kOperate)) co_return std::nullopt;
  co_return ErrorResponse(
      request, 403, "Jobs can connect from this host, too: events of jobs need a token of scope operate.");
}

Task<Response> Handle(Loop& loop, launcher::Launcher& launcher, Access& access, Request request) {
  std::optional<Response> refusal = co_await Refusal(access, request);
  if (refusal) co_return std::move(*refusal);
  if (!request.Header("content-type").starts_with("application/json"))
    co_return ErrorResponse(request, 415, "Events of jobs are sent as application/json.");
  if (!launcher.records().synced()) co_return ErrorResponse(request, 503, store::Caches::kNotComplete);
  Expected<JobEvent> event = ParseJobEvent(request.body);
  if (!event) co_return ErrorResponse(request, 400, event.error().message());
  SteadyTime deadline = loop.SteadyNow() + kTimeout;
  Task<launcher::JobDecision> decide =
      WithDeadline(loop, deadline, "deciding", launcher.job_events().Decide(*event));
  Outcome<launcher::JobDecision> decision = co_await Attempt(std::move(decide));
  if (!decision) co_return ErrorResponse(request, 503, decision.error().message());
  Response response;
  response.content_type = "application/json";
  response.body = DecisionJson(*decision);
  co_return response;
}

JsonType BodyType() {
  JsonType build = ObjectOf({{"node_name", Text().OrNull(), "where it ran; without it nothing happens", true},
                             {"status", Text().OrNull(), "`SUCCESS`, or anything else for a failure", true}});
  return ObjectOf({{"name", Text(), "name of the job"},
                   {"build", std::move(build), "the run"},
                   {"event", OneOf({"onStarted", "onCompleted", "onFinalized"}),
                    "what has happened; only onFinalized, the default, does anything", true}});
}

}  // namespace

Endpoint JobEventsEndpoint(Loop& loop, launcher::Launcher& launcher, Access& access) {
  JsonType answer =
      ObjectOf({{"is_kept", Flag(), "whether the node is held, or will be when it is given back"},
                {"node", Text().OrNull(), "id of the node"},
                {"message", Text(), "for operators: why"}});
  EndpointDoc doc{
      "Reports a run of a job; from this host only, and with a token where jobs can connect from it, too.",
      {},
      {{"application/json", std::move(answer)}},
      {400, 401, 403, 415, 429, 503},
      BodyType()};
  auto handle = [&loop, &launcher, &access](Request request) {
    return Handle(loop, launcher, access, std::move(request));
  };
  return {"POST", "/api/v1/job-events", handle, std::move(doc)};
}

}  // namespace nodepool::web
