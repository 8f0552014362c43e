#include "drivers/kubernetes/machine/create_in_new.h"

#include "async/attempt.h"
#include "async/backoff.h"
#include "drivers/kubernetes/api/status.h"

namespace nodepool::drivers::kubernetes {

namespace api = driver::cloud::api;

namespace {

constexpr Duration kNewFor = std::chrono::seconds(10);
constexpr Backoff::Settings kNewPauses{std::chrono::milliseconds(100), std::chrono::seconds(1)};

bool IsTooNew(Kind kind, const Failure& failure) {
  int status = api::StatusOf(failure);
  std::string reason = ReasonOf(failure);
  // "No API token found for service account", before 1.24.
  if (status == 500) return reason == "ServerTimeout";
  if (status != 403 || failure.verdict() == Verdict::kQuota || reason == "NamespaceTerminating") return false;
  auto says = [&failure](const char* words) { return failure.message().find(words) != std::string::npos; };
  if (kind == Kind::kOpenshift) return !says("denied the request");  // of an admission web hook, which lasts
  return says("error looking up service account");
}

}  // namespace

Task<boost::json::object> CreateInNew(Cloud& cloud, std::string collection, boost::json::object body) {
  SteadyTime until = cloud.loop().SteadyNow() + kNewFor;
  Backoff pauses(kNewPauses, cloud.environment.random);
  while (true) {
    Task<boost::json::object> call = cloud.cluster.Create(collection, body);
    Outcome<boost::json::object> created = co_await Attempt(std::move(call));
    if (created) co_return std::move(*created);
    if (ReasonOf(created.error()) == "AlreadyExists") co_return boost::json::object();
    bool is_too_new = IsTooNew(cloud.config->kind, created.error());
    if (!is_too_new || cloud.loop().SteadyNow() >= until) created.error().Rethrow();
    Duration pause = pauses.Next();
    co_await cloud.loop().SleepFor(pause);
  }
}

}  // namespace nodepool::drivers::kubernetes
