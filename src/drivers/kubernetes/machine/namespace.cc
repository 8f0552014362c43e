#include "drivers/kubernetes/machine/namespace.h"

#include "async/attempt.h"
#include "async/backoff.h"
#include "base/json_fields.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/bodies.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

namespace {

// A project's labels are lost when it is requested; not everyone may set them later.
Task<> LabelProject(Cluster& cluster, log::Logger logger, const NodePlan& plan) {
  json::object body = {{"metadata", json::object{{"labels", ToJson(plan.labels)}}}};
  Task<json::object> call =
      cluster.MergePatch(std::string(kNamespaces) + "/" + plan.name_space, std::move(body));
  Outcome<json::object> labelled = co_await Attempt(std::move(call));
  if (!labelled) logger.Debug("Project {} has no labels: {}", plan.name_space, labelled.error().message());
}

}  // namespace

Task<> MakeNamespace(Cloud& cloud, const NodePlan& plan) {
  bool is_project = cloud.config->kind == Kind::kOpenshift;
  json::object body = is_project ? ProjectRequestBody(plan.name_space, plan.labels)
                                 : NamespaceBody(plan.name_space, plan.labels);
  Task<json::object> call =
      cloud.cluster.Create(is_project ? kProjectRequests : kNamespaces, std::move(body));
  Outcome<json::object> made = co_await Attempt(std::move(call));
  // What exists has this attempt's name: the answer to an earlier call was lost.
  if (!made && ReasonOf(made.error()) != "AlreadyExists") made.error().Rethrow();
  if (is_project) co_await LabelProject(cloud.cluster, cloud.logger, plan);
}

Task<std::string> OwnName(Cluster& cluster) {
  Outcome<json::object> user = co_await Attempt(cluster.Get(kOwnUser));
  const json::object* metadata = user ? ObjectIn(*user, "metadata") : nullptr;
  co_return metadata == nullptr ? std::string() : TextIn(*metadata, "name");
}

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
