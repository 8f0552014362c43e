#include "drivers/kubernetes/machine/namespace.h"

#include <fmt/format.h>

#include "async/attempt.h"
#include "base/json_fields.h"
#include "drivers/kubernetes/api/paths.h"
#include "drivers/kubernetes/api/status.h"
#include "drivers/kubernetes/objects/pod_body.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

namespace {

bool IsOpenshift(const Cloud& cloud) { return cloud.config->kind == Kind::kOpenshift; }

Task<bool> IsOurs(Cloud& cloud, const Object& found, const NodePlan& plan) {
  if (IsOfNode(found, plan)) co_return true;
  if (!IsOpenshift(cloud) || found.requester.empty()) co_return false;
  std::string own = co_await OwnName(cloud);
  co_return own == found.requester;
}

// A project's labels are lost when it is requested; not everyone may set them later.
Task<> LabelProject(Cloud& cloud, const NodePlan& plan) {
  json::object body = {{"metadata", json::object{{"labels", ToJson(plan.labels)}}}};
  Task<json::object> call =
      cloud.cluster.MergePatch(std::string(kNamespaces) + "/" + plan.name_space, std::move(body));
  Outcome<json::object> labelled = co_await Attempt(std::move(call));
  if (!labelled)
    cloud.logger.Debug("Project {} has no labels: {}", plan.name_space, labelled.error().message());
}

Task<> Request(Cloud& cloud, const NodePlan& plan) {
  if (!IsOpenshift(cloud)) {
    Task<json::object> call = cloud.cluster.Create(kNamespaces, NamespaceBody(plan.name_space, plan.labels));
    co_await std::move(call);
    co_return;
  }
  Task<json::object> call =
      cloud.cluster.Create(kProjectRequests, ProjectRequestBody(plan.name_space, plan.labels));
  co_await std::move(call);
  co_await LabelProject(cloud, plan);
}

}  // namespace

Task<> MakeNamespace(Cloud& cloud, driver::cloud::MachineReport& machine, const NodePlan& plan) {
  const std::string path = fmt::format("{}/{}", cloud.Namespaces().collection(), plan.name_space);
  while (true) {
    Follower follower(cloud.Namespaces(), KeyOf("", plan.name_space));
    Outcome<> made = co_await Attempt(Request(cloud, plan));
    if (made) co_return;
    if (ReasonOf(made.error()) != "AlreadyExists") made.error().Rethrow();
    Outcome<json::object> read = co_await Attempt(cloud.cluster.Get(path));
    if (FailedWith(read, Verdict::kNotFound)) continue;
    if (!read) read.error().Rethrow();
    Object found = ReadObject(*read);
    bool is_ours = co_await IsOurs(cloud, found, plan);
    if (!is_ours) {
      throw Error(Verdict::kConflict,
                  fmt::format("{} exists already and is not of this node; delete it in the cluster", path));
    }
    if (!found.is_terminating) co_return;
    machine.SetState("waiting for the end of namespace " + plan.name_space);
    while (!follower.was_gone()) {
      if (cloud.loop().SteadyNow() >= plan.deadline)
        throw Error(Verdict::kTimedOut, path + " of an earlier attempt is still being deleted");
      co_await follower.Change(plan.deadline);
    }
  }
}

Task<std::string> OwnName(Cloud& cloud) {
  Outcome<json::object> user = co_await Attempt(cloud.cluster.Get(kOwnUser));
  const json::object* metadata = user ? ObjectIn(*user, "metadata") : nullptr;
  co_return metadata == nullptr ? std::string() : TextIn(*metadata, "name");
}

}  // namespace nodepool::drivers::kubernetes
