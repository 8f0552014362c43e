#include "web/runner_hooks.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>

#include "async/attempt.h"
#include "async/deadline.h"
#include "base/digest.h"
#include "base/encoding.h"
#include "model/workflow_job.h"
#include "net/http/seats.h"

namespace nodepool::web {
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

}  // namespace nodepool::web
