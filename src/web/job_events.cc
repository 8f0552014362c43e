#include "web/job_events.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "async/attempt.h"
#include "async/deadline.h"
#include "model/job_event.h"

namespace nodepool::web {
namespace {

namespace json = boost::json;

constexpr Duration kTimeout = std::chrono::seconds(10);

std::string JsonOf(const launcher::JobDecision& decision) {
  json::object body{{"is_kept", decision.is_kept},
                    {"node", decision.node.empty() ? json::value() : json::value(decision.node.value)},
                    {"message", decision.why}};
  return json::serialize(body);
}

Task<Response> Handle(Loop& loop, launcher::Launcher& launcher, const Access& access, Request request) {
  if (!access.IsOfThisHost(request))
    co_return ErrorResponse(request, 403, "Events of jobs are taken from this host only.");
  request.prove("this host");
  if (!request.Header("content-type").starts_with("application/json"))
    co_return ErrorResponse(request, 415, "Events of jobs are sent as application/json.");
  if (!launcher.records().is_complete())
    co_return ErrorResponse(request, 503, launcher::Records::kNotComplete);
  Expected<JobEvent> event = ParseJobEvent(request.body);
  if (!event) co_return ErrorResponse(request, 400, event.error().message());
  SteadyTime deadline = loop.SteadyNow() + kTimeout;
  Task<launcher::JobDecision> decide =
      WithDeadline(loop, deadline, "deciding", launcher.job_events().Decide(*event));
  Outcome<launcher::JobDecision> decision = co_await Attempt(std::move(decide));
  if (!decision) co_return ErrorResponse(request, 503, decision.error().message());
  Response response;
  response.content_type = "application/json";
  response.body = JsonOf(*decision);
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

Endpoint JobEventsEndpoint(Loop& loop, launcher::Launcher& launcher, const Access& access) {
  JsonType answer =
      ObjectOf({{"is_kept", Flag(), "whether the node is held, or will be when it is given back"},
                {"node", Text().OrNull(), "id of the node"},
                {"message", Text(), "for operators: why"}});
  EndpointDoc doc{"Reports a run of a job; from this host only.",
                  {},
                  {{"application/json", std::move(answer)}},
                  {400, 403, 415, 503},
                  BodyType()};
  auto handle = [&loop, &launcher, &access](Request request) {
    return Handle(loop, launcher, access, std::move(request));
  };
  return {"POST", "/api/v1/job-events", handle, std::move(doc)};
}

}  // namespace nodepool::web
