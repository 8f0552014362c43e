#include "async/attempt.h"
#include "async/backoff.h"
#include "drivers/gce/api/faults.h"
#include "drivers/gce/gce_adapter.h"

namespace nodepool::drivers::gce {

using driver::cloud::MachineReport;

namespace {

constexpr Duration kUnknownPause = std::chrono::seconds(1);
constexpr Duration kListedLimit = std::chrono::seconds(60);
constexpr Backoff::Settings kBusyPauses{std::chrono::seconds(1), std::chrono::seconds(15)};

// The node's id in the name of its machine.
std::string NodeIn(const std::string& name) { return name.starts_with("np") ? name.substr(2) : name; }

// Whether an instance that Google does not know may still appear: its insert was accepted a moment ago.
Task<bool> MayAppear(GceCloud& cloud, const MachineId& id) {
  std::optional<NewInstance> made = cloud.fresh.Find(id.name);
  if (!made || made->zone != id.zone) co_return false;
  if (made->operation.empty()) co_return true;
  Outcome<Operation> insert = co_await Attempt(cloud.compute.ReadAgain("zones/" + id.zone, made->operation));
  co_return !insert || !insert->has_failed();
}

// False: another change of the instance is in progress. By its number, which no other instance has.
Task<bool> SubmitDelete(GceCloud& cloud, const GceInstance& instance) {
  const std::string& name = instance.number.empty() ? instance.name : instance.number;
  ComputeCall call{"instances.delete", InstancePath(instance.zone, name)};
  Outcome<Operation> deleted = co_await Attempt(cloud.compute.Change("DELETE", std::move(call)));
  if (deleted || FailedWith(deleted, Verdict::kNotFound)) co_return true;
  if (MeaningOf(CodeOf(deleted.error())) == Meaning::kNotReady) co_return false;
  deleted.error().Rethrow();
}

// False: it is still listed after a while.
Task<bool> AwaitGone(GceCloud& cloud, const GceInstance& instance) {
  InstanceLists& lists = instance.has_provider_label ? cloud.labelled : cloud.all;
  auto is_it = [number = instance.number](const GceInstance& listed) { return listed.number == number; };
  return lists.AwaitGone({instance.zone, instance.name}, std::move(is_it), kListedLimit);
}

}  // namespace

Task<> GceAdapter::Delete(MachineReport& machine, boost::json::value external_id) {
  GceCloud& cloud = cloud_;
  const MachineId id = ReadExternalId(external_id, config_->zone);
  if (id.name.empty()) co_return;
  machine.SetState("deleting instance");
  Backoff pauses(kBusyPauses, cloud.environment.random);
  while (true) {
    std::optional<GceInstance> found = co_await FindInstance(cloud.compute, id.zone, id.name);
    if (found && !IsOwn(cloud, *found, NodeIn(id.name), id.attempt)) {
      machine.logger().Info("Instance {} in {} is not this node's and is left alone", id.name, id.zone);
      break;
    }
    if (!found) {
      bool may_appear = co_await MayAppear(cloud, id);
      if (!may_appear) break;
      co_await cloud.loop().SleepFor(kUnknownPause);
      continue;
    }
    machine.logger().Info("Deleting instance {} in {}", id.name, id.zone);
    bool is_begun = co_await SubmitDelete(cloud, *found);
    bool is_gone = is_begun && co_await AwaitGone(cloud, *found);
    if (is_gone) break;
    Duration pause = pauses.Next();
    co_await cloud.loop().SleepFor(pause);
  }
  cloud.fresh.Remove(id.name);
  cloud.all.NoteChange();
  machine.SetState("complete");
}

// A leaked instance goes if it still has these marks; its end is not waited for.
Task<> GceAdapter::DeleteResource(driver::cloud::Resource resource) {
  if (resource.type != kInstanceKind) {
    co_await images_->DeleteMarked(std::move(resource));
    co_return;
  }
  std::size_t slash = resource.id.find('/');
  std::optional<GceInstance> found =
      co_await FindInstance(cloud_.compute, resource.id.substr(0, slash), resource.id.substr(slash + 1));
  if (!found || found->metadata != resource.metadata) co_return;
  bool is_begun = co_await SubmitDelete(cloud_, *found);
  if (!is_begun) throw Error(Verdict::kRetry, "another change of the instance is in progress");
}

}  // namespace nodepool::drivers::gce
