#include "driver/testing/machines.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"
#include "driver/cloud/launch/instance.h"
#include "driver/cloud/metadata.h"

namespace nodepool::driver::testing {

using cloud::CreateParameters;
using cloud::Instance;
using cloud::Resource;

namespace {

constexpr int kDeleteAttempts = 5;
constexpr Duration kDeletePause = std::chrono::seconds(2);

std::string Describe(const Machine& machine) {
  const boost::json::value& id = machine.recorder.external_id;
  if (!id.is_null()) return fmt::format("{}: id {}", machine.name(), cloud::ToText(id));
  return fmt::format("{}: no id is known; if it exists, its metadata has {} = {}", machine.name(),
                     cloud::kNodeKey, machine.node);
}

}  // namespace

Error Machines::Named(const std::string& call, const Failure& failure) {
  std::string message = failure.message();
  return Error(failure.verdict(), message.starts_with(call) ? message : call + ": " + message);
}

MachinePtr Machines::New() {
  auto machine = std::make_shared<Machine>();
  machine->node = NodeId(fmt::format("{:010}", 9'000'000'000 + ++count_));
  made_.push_back(machine);
  return machine;
}

Task<> Machines::CreateUnbounded(MachinePtr machine) {
  CreateParameters parameters;
  parameters.hostname = machine->name();
  parameters.label = subject_.label;
  parameters.pool = subject_.pool;
  parameters.image_external_id = subject_.image_external_id;
  parameters.metadata = cloud::MetadataOf(machine->node, subject_.pool->name, subject_.provider);
  parameters.attempt_mark = SystemRandom().UuidHex();
  parameters.request_id = RequestId("200-0000000001");
  parameters.request.node_types = {subject_.label->name};
  machine->instance = co_await subject_.adapter.Create(machine->recorder, std::move(parameters));
}

Task<> Machines::Create(MachinePtr machine) {
  co_await Call("Create of " + machine->name(), CreateUnbounded(machine));
  has_created_ = true;
}

Task<> Machines::DeleteUnbounded(MachinePtr machine) {
  Recorder recorder;
  co_await cloud::EnsureGone(subject_.adapter.Delete(recorder, machine->recorder.external_id));
}

Task<> Machines::Delete(MachinePtr machine) {
  const boost::json::value& id = machine->recorder.external_id;
  if (id.is_null()) {
    throw Error(Verdict::kFail, machine->name() + " cannot be deleted: Create did not set its external id");
  }
  std::string what = fmt::format("Delete of {} (id {})", machine->name(), cloud::ToText(id));
  co_await Call(std::move(what), DeleteUnbounded(machine));
}

Task<std::vector<Instance>> Machines::ListInstances() {
  return Call("ListInstances", subject_.adapter.ListInstances());
}

Task<std::vector<Resource>> Machines::Listed(MachinePtr machine) {
  std::vector<Resource> all = co_await Call("ListResources", subject_.adapter.ListResources());
  std::vector<Resource> own;
  for (Resource& resource : all) {
    cloud::CheckResource(resource);
    cloud::Owner owner = cloud::OwnerOf(resource.metadata);
    if (owner.provider == subject_.provider.str() && owner.node == machine->node)
      own.push_back(std::move(resource));
  }
  co_return own;
}

Task<> Machines::Remove(MachinePtr machine) {
  for (int attempt = 1; !machine->recorder.external_id.is_null(); ++attempt) {
    Outcome<> deleted = co_await Attempt(Delete(machine));
    if (deleted) break;
    if (attempt == kDeleteAttempts) deleted.error().Rethrow();
    co_await subject_.loop.SleepFor(kDeletePause);
  }
  if (subject_.lists_machines) {
    std::vector<Resource> left = co_await Listed(machine);
    for (Resource& resource : left) {
      std::string what = fmt::format("DeleteResource of {} {}", resource.type, resource.id);
      co_await Call(what, cloud::EnsureGone(subject_.adapter.DeleteResource(std::move(resource))));
    }
    // A cloud may be slow, as long as the call ends.
    SteadyTime deadline = subject_.loop.SteadyNow() + subject_.call_timeout;
    for (left = co_await Listed(machine); !left.empty() && subject_.loop.SteadyNow() < deadline;) {
      co_await subject_.loop.SleepFor(kDeletePause);
      left = co_await Listed(machine);
    }
    if (!left.empty()) {
      throw Error(
          Verdict::kFail,
          fmt::format("{} {} is still listed after its machine was deleted, and deleted again as a leak",
                      left.front().type, left.front().id));
    }
  }
  machine->is_removed = true;
}

bool Machines::any_has_id() const {
  return std::ranges::any_of(
      made_, [](const MachinePtr& machine) { return !machine->recorder.external_id.is_null(); });
}

Task<> Machines::RemoveAll() {
  const std::vector<MachinePtr> machines = made_;
  for (const MachinePtr& machine : machines) {
    if (!machine->is_removed) co_await Attempt(Remove(machine));
  }
}

std::vector<std::string> Machines::TakeLeft() {
  std::vector<std::string> left;
  for (const MachinePtr& machine : std::exchange(made_, {})) {
    if (!machine->is_removed) left.push_back(Describe(*machine));
  }
  return left;
}

}  // namespace nodepool::driver::testing
