#include "web/launcher_site.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <expected>
#include <iterator>
#include <optional>

#include "async/deadline.h"
#include "async/task.h"
#include "base/crypto.h"
#include "base/text.h"
#include "base/version.h"
#include "model/job.h"
#include "net/http/connection.h"
#include "web/actions/action_endpoints.h"
#include "web/api/api.h"
#include "web/api/api_fields.h"
#include "web/api/open_api.h"
#include "web/lists/lists.h"
#include "web/lists/recent_answers.h"
#include "web/live/live.h"
#include "web/requests/request_endpoints.h"

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

namespace {

constexpr const char* kHookPath = "/api/v1/runners/hooks/{name}";
constexpr Duration kWriteTime = std::chrono::seconds(8);  // GitHub waits for ten
constexpr std::size_t kMostHookedJobs = 5000;             // of a service
constexpr Duration kOldestJob = std::chrono::hours(24);

// What deliveries are answered with, and what they need.
struct Hooks {
  Loop& loop;
  launcher::Launcher& launcher;
  log::Logger logger{"nodepool.runners"};
  Attempts attempts = {};

  // Null: none of the name takes deliveries.
  const config::RunnerService* Find(const driver::LoadedConfig& config, const std::string& name) const {
    auto found = std::ranges::find(config.common.runners, name, &config::RunnerService::name);
    bool takes = found != config.common.runners.end() && found->mode == config::RunnerMode::kWebhook &&
                 !found->credentials.webhook_secrets.empty();
    return takes ? &*found : nullptr;
  }
};

Response DelayedDelivery(const Request& request, Duration pause) {
  Response response = ErrorResponse(request, 429, "Too many deliveries with a wrong signature.");
  auto seconds = std::chrono::ceil<std::chrono::seconds>(pause).count();
  response.headers.emplace_back("Retry-After", std::to_string(seconds));
  return response;
}

// The refusal of a delivery that nobody has signed who knows the secret; none: it is good.
std::optional<Response> RefusalOf(Hooks& hooks, const config::RunnerService& service,
                                  const Request& request) {
  SteadyTime now = hooks.loop.SteadyNow();
  std::string network = net::NetworkOf(request.peer);
  const std::string& signature = request.Header("x-hub-signature-256");
  if (IsSignedWith(service.credentials.webhook_secrets, request.body, signature)) {
    request.prove("webhook " + service.name);
    return std::nullopt;
  }
  if (Duration pause = hooks.attempts.PauseOf(network, now); pause > Duration::zero())
    return DelayedDelivery(request, pause);
  hooks.attempts.Failed(network, now);
  request.prove("");
  hooks.logger.Info("{}: a delivery of a webhook from {} was refused: its signature is {}", service.name,
                    request.peer, signature.empty() ? "missing" : "wrong");
  return ErrorResponse(request, 401, "X-Hub-Signature-256 is not the body's, with the webhook's secret.");
}

Task<Response> NoteDelivery(Hooks& hooks, const Request& request, WorkflowJob job) {
  const store::RunnerCache& known = hooks.launcher.records().runners;
  bool is_known = known.jobs().contains({job.service, job.job.request});
  if (!is_known && known.CountJobsOf(job.service) >= kMostHookedJobs)
    co_return ErrorResponse(request, 503, "There are too many jobs.");
  SteadyTime deadline = hooks.loop.SteadyNow() + kWriteTime;
  Task<> write = hooks.launcher.store().runners.NoteJob(std::move(job));
  Outcome<> noted = co_await Attempt(WithDeadline(hooks.loop, deadline, "writing", std::move(write)));
  if (!noted) co_return ErrorResponse(request, 503, noted.error().message());
  co_return net::PlainResponse(202);
}

Task<Response> HandleDelivery(std::shared_ptr<Hooks> hooks, Request request) {
  std::shared_ptr<const driver::LoadedConfig> config = hooks->launcher.config();
  std::string name = ParameterIn(request.path, kHookPath);
  const config::RunnerService* service = hooks->Find(*config, name);
  if (service == nullptr)
    co_return ErrorResponse(request, 404, "No service of this name has mode webhook and a webhook-secret.");
  if (std::optional<Response> refusal = RefusalOf(*hooks, *service, request)) co_return std::move(*refusal);
  if (request.Header("x-github-event") != "workflow_job")
    co_return net::PlainResponse(200, "only events of workflow_job are of use");
  Expected<std::optional<WorkflowJob>> event = ParseWorkflowJobEvent(request.body);
  if (!event) co_return ErrorResponse(request, 400, event.error().message());
  WallTime now = hooks->loop.Now();
  bool is_of_use = *event && service->Covers((*event)->job.repository) &&
                   !((*event)->job.queued_time && now - *(*event)->job.queued_time > kOldestJob &&
                     (*event)->state == WorkflowJobState::kQueued);
  if (!is_of_use) co_return net::PlainResponse(200, "the job is not for runners of this service");
  if (!hooks->launcher.records().synced()) co_return ErrorResponse(request, 503, store::Caches::kNotComplete);
  WorkflowJob job = std::move(**event);
  job.service = service->name;
  job.seen_time = now;
  co_return co_await NoteDelivery(*hooks, request, std::move(job));
}

}  // namespace

bool IsSignedWith(const std::vector<std::string>& secrets, const std::string& body,
                  const std::string& header) {
  bool is_good = false;
  for (const std::string& secret : secrets) {
    std::string expected = "sha256=" + Hex(KeyedDigest(secret, body));
    bool is_this = header.size() == expected.size() &&
                   CRYPTO_memcmp(header.data(), expected.data(), expected.size()) == 0;
    is_good |= is_this;
  }
  return is_good;
}

Endpoint RunnerHookEndpoint(Loop& loop, launcher::Launcher& launcher) {
  auto hooks = std::make_shared<Hooks>(Hooks{loop, launcher});
  EndpointDoc doc{
      "Takes GitHub's event `workflow_job` for a service of `runners` with mode webhook.",
      {{"name", "of the service", Text(), false, ParameterDoc::Place::kPath},
       {"X-GitHub-Event", "`workflow_job`; others are ignored", Text(), false, ParameterDoc::Place::kHeader},
       {"X-Hub-Signature-256", "`sha256=` and the body's HMAC with the webhook's secret, in hex", Text(),
        false, ParameterDoc::Place::kHeader}},
      {{"text/plain", Text()}},
      {400, 401, 404, 413, 429, 503},
      std::nullopt,
      {200, 202}};
  return {.method = "POST",
          .path = kHookPath,
          .handler = [hooks](Request request) { return HandleDelivery(hooks, std::move(request)); },
          .doc = std::move(doc),
          .is_open = true,
          .callers = Endpoint::Callers::kTokens};
}

namespace {

Response Ready(const Request& request, const launcher::Launcher& launcher, const std::string& state_fault,
               WallTime now) {
  if (!state_fault.empty())
    return ErrorResponse(request, 503,
                         "The embedded ZooKeeper server cannot write its state: " + state_fault);
  if (!launcher.is_ready()) return ErrorResponse(request, 503, launcher.WhyNotReady());
  Response response;
  response.body = "OK";
  if (const auto& rejected = launcher.rejected())
    response.body += "; the changed configuration is rejected: " + rejected->error;
  AddCachingHeaders(response, now);
  return response;
}

Response Metrics(const launcher::Launcher& launcher, const metrics::Prometheus& prometheus) {
  Response response;
  response.content_type = metrics::Prometheus::kContentType;
  response.body = prometheus.Text([&launcher](metrics::Sink& to) { launcher.ReportGauges(to); });
  return response;
}

}  // namespace

std::vector<Endpoint> LauncherEndpoints(Loop& loop, launcher::Launcher& launcher,
                                        const metrics::Prometheus& prometheus, const std::string& state_fault,
                                        Access& access) {
  std::vector<Endpoint> endpoints = {
      {"GET",
       "/ready",
       Pure([&](const Request& request) { return Ready(request, launcher, state_fault, loop.Now()); }),
       {"200 while every configured provider can be used.", {}, {{"text/plain", Text()}}, {503}},
       true,
       true},
      {"GET",
       "/metrics",
       Pure([&](const Request&) { return Metrics(launcher, prometheus); }),
       {"Metrics in Prometheus' text format.", {}, {{"text/plain", Text()}}, {}}},
  };
  auto recent = std::make_shared<RecentAnswers>(loop);
  std::ranges::move(ListEndpoints(loop, launcher, recent), std::back_inserter(endpoints));
  std::ranges::move(ApiEndpoints(launcher, recent), std::back_inserter(endpoints));
  endpoints.push_back(BuildLogEndpoint(launcher));
  endpoints.push_back(JobEventsEndpoint(loop, launcher, access));
  endpoints.push_back(RunnerHookEndpoint(loop, launcher));
  auto live = std::make_shared<Live>(loop, launcher, prometheus, recent);
  std::ranges::move(LiveEndpoints(loop, std::move(live), access), std::back_inserter(endpoints));
  std::ranges::move(RequestEndpoints(loop, launcher, access), std::back_inserter(endpoints));
  std::ranges::move(ActionEndpoints(loop, launcher, access), std::back_inserter(endpoints));
  endpoints.push_back(OpenApiEndpoint(endpoints, std::string(Version()), loop));
  return endpoints;
}

}  // namespace nodepool::web
