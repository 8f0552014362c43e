#include "drivers/kubernetes/machine/namespace.h"

#include "async/attempt.h"
#include "base/json_fields.h"
#include "drivers/kubernetes/api/paths.h"
#include "drivers/kubernetes/api/status.h"
#include "drivers/kubernetes/objects/pod_body.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

namespace {

// A project's labels are lost when it is requested; not everyone may set them later.
Task<> LabelProject(Cloud& cloud, const NodePlan& plan) {
  json::object body = {{"metadata", json::object{{"labels", ToJson(plan.labels)}}}};
  Task<json::object> call =
      cloud.cluster.MergePatch(std::string(kNamespaces) + "/" + plan.name_space, std::move(body));
  Outcome<json::object> labelled = co_await Attempt(std::move(call));
  if (!labelled)
    cloud.logger.Debug("Project {} has no labels: {}", plan.name_space, labelled.error().message());
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
  if (is_project) co_await LabelProject(cloud, plan);
}

Task<std::string> OwnName(Cloud& cloud) {
  Outcome<json::object> user = co_await Attempt(cloud.cluster.Get(kOwnUser));
  const json::object* metadata = user ? ObjectIn(*user, "metadata") : nullptr;
  co_return metadata == nullptr ? std::string() : TextIn(*metadata, "name");
}

}  // namespace nodepool::drivers::kubernetes
