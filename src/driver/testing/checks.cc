#include "driver/testing/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "async/deadline.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/ids.h"
#include "base/scope_exit.h"
#include "driver/cloud/launch/machine_start.h"
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

namespace {

constexpr Duration kEndLimit = std::chrono::seconds(10);
constexpr const char* kListsNothing = "the adapter lists nothing";

[[noreturn]] void Fail(std::string what) { throw Error(Verdict::kFail, std::move(what)); }

void Expect(bool is_so, std::string_view what) {
  if (!is_so) Fail(std::string(what));
}

Task<std::string> CreationTellsTheId(Machines& machines) {
  MachinePtr machine = machines.New();
  co_await machines.Create(machine);
  const boost::json::value id = machine->recorder.external_id;
  const Instance instance = machine->instance;
  co_await machines.Remove(machine);
  Expect(!id.is_null(), "Create ended without having told the id with SetExternalId");
  Expect(instance.external_id.is_null() || instance.external_id == id,
         "the instance has another id than the one told with SetExternalId");
  cloud::CheckInstance(instance);
  const auto& port = instance.connection.connection_port;
  bool has_no_keys = port && port->is_object();
  Expect(!machines.subject().label->host_key_checking || instance.interface_ip || instance.host_keys ||
             has_no_keys,
         "the instance has neither an address at which its host keys could be read nor the keys");
  co_return "";
}

Task<std::string> MetadataComesBack(Machines& machines) {
  const Subject& subject = machines.subject();
  if (!subject.lists_machines) co_return kListsNothing;
  MachinePtr machine = machines.New();
  co_await machines.Create(machine);
  auto wanted = cloud::MetadataOf(machine->node, subject.pool->name, subject.provider);
  auto has_all = [&wanted](const std::map<std::string, std::string>& metadata) {
    return std::ranges::all_of(wanted, [&](const auto& entry) {
      auto found = metadata.find(entry.first);
      return found != metadata.end() && found->second == entry.second;
    });
  };
  std::vector<Resource> resources = co_await machines.Listed(machine);
  std::vector<Instance> instances = co_await machines.ListInstances();
  co_await machines.Remove(machine);
  Expect(!resources.empty(), "ListResources does not list a machine by the node's id in its metadata");
  Expect(std::ranges::any_of(resources, has_all, &Resource::metadata),
         "ListResources gives other metadata than the machine was made with");
  Expect(std::ranges::any_of(instances, has_all, &Instance::metadata),
         "ListInstances does not list a machine by the metadata that it was made with");
  co_return "";
}

Task<std::string> ListsAgree(Machines& machines) {
  if (!machines.subject().lists_machines) co_return kListsNothing;
  MachinePtr machine = machines.New();
  co_await machines.Create(machine);
  std::vector<Instance> instances = co_await machines.ListInstances();
  std::vector<Instance> again = co_await machines.ListInstances();
  std::vector<Resource> resources = co_await machines.Listed(machine);
  boost::json::value id = machine->recorder.external_id;
  co_await machines.Delete(machine);
  std::vector<Instance> after = co_await machines.ListInstances();
  std::vector<Resource> left = co_await machines.Listed(machine);
  co_await machines.Remove(machine);
  auto count = [&id](const std::vector<Instance>& list) {
    return std::ranges::count_if(list,
                                 [&id](const Instance& instance) { return instance.external_id == id; });
  };
  Expect(count(instances) == 1 && count(again) == 1,
         "ListInstances does not list a living machine once, each time");
  std::set<std::pair<std::string, std::string>> names;
  for (const Resource& resource : resources) names.emplace(resource.type, resource.id);
  Expect(names.size() == resources.size(), "ListResources lists something twice");
  Expect(count(after) == 0, "ListInstances still lists a machine whose deletion ended");
  Expect(left.empty(), "ListResources still lists something of a machine whose deletion ended");
  co_return "";
}

Task<std::string> QuotaAddsUp(Machines& machines) {
  const Subject& subject = machines.subject();
  QuotaInformation need = subject.adapter.QuotaForLabel(*subject.label);
  for (const auto& [resource, amount] : need.resources()) {
    Expect(std::isfinite(amount) && amount >= 0, "QuotaForLabel tells " + resource + " that is no amount");
  }
  QuotaInformation limits = co_await machines.Call("QuotaLimits", subject.adapter.QuotaLimits());
  for (const auto& [resource, amount] : limits.resources()) {
    Expect(!std::isnan(amount) && amount >= 0, "QuotaLimits tells " + resource + " that is no limit");
  }
  limits.Subtract(need);
  Expect(limits.NonNegative(), "one node of the label exceeds what QuotaLimits tells");
  MachinePtr machine = machines.New();
  co_await machines.Create(machine);
  std::vector<Instance> instances;
  if (subject.lists_machines) instances = co_await machines.ListInstances();
  Resources made = machine->instance.quota.resources();
  boost::json::value id = machine->recorder.external_id;
  co_await machines.Remove(machine);
  Expect(made == need.resources(),
         "the instance uses other amounts than QuotaForLabel has told for its label");
  for (const Instance& instance : instances) {
    Expect(instance.external_id != id || instance.quota.resources() == made,
           "ListInstances tells other amounts for a machine than Create did");
  }
  co_return "";
}

Task<> DeleteTwice(Machines& machines, MachinePtr machine) {
  co_await machines.Delete(machine);
  co_await machines.Delete(machine);
}

Task<std::string> DeletionIsIdempotent(Machines& machines) {
  MachinePtr machine = machines.New();
  co_await machines.Create(machine);
  co_await machines.Delete(machine);
  Outcome<> again = co_await Attempt(DeleteTwice(machines, machine));
  co_await machines.Remove(machine);
  if (!again)
    Fail("deleting a machine that is gone is neither success nor kNotFound: " + again.error().message());
  co_return "";
}

Task<std::string> LeaksAreFound(Machines& machines) {
  const Subject& subject = machines.subject();
  if (!subject.lists_machines) co_return kListsNothing;
  MachinePtr machine = machines.New();
  co_await machines.Create(machine);
  machine->recorder.external_id = nullptr;  // no record has it
  std::vector<Resource> leaked = co_await machines.Listed(machine);
  co_await machines.Remove(machine);
  Expect(!leaked.empty(), "a machine whose id is not known is not listed");
  for (Resource& resource : leaked) {
    Task<> deletion = cloud::EnsureGone(subject.adapter.DeleteResource(resource));
    Outcome<> deleted = co_await Attempt(machines.Call("DeleteResource", std::move(deletion)));
    if (!deleted)
      Fail("deleting a leaked " + resource.type +
           " that is gone is neither success nor kNotFound: " + deleted.error().message());
  }
  co_return "";
}

Task<std::string> LivingMachinesAreNotMissing(Machines& machines) {
  cloud::Adapter& adapter = machines.subject().adapter;
  MachinePtr machine = machines.New();
  co_await machines.Create(machine);
  const std::vector<boost::json::value> ids = {machine->recorder.external_id};
  std::vector<boost::json::value> missing =
      co_await machines.Call("MissingMachines", adapter.MissingMachines(ids));
  co_await machines.Delete(machine);
  std::vector<boost::json::value> gone =
      co_await machines.Call("MissingMachines", adapter.MissingMachines(ids));
  co_await machines.Remove(machine);
  Expect(missing.empty(), "MissingMachines names a machine that exists");
  Expect(gone.empty() || gone == ids, "MissingMachines names machines that were not asked for");
  co_return "";
}

Task<> CreateAndKeepOutcome(Machines& machines, MachinePtr machine, Outcome<>& outcome) {
  outcome = co_await Attempt(machines.Create(machine));
}

Task<std::string> TwoAtATime(Machines& machines) {
  MachinePtr first = machines.New();
  MachinePtr second = machines.New();
  std::array<Outcome<>, 2> created;
  TaskGroup group(machines.subject().loop, log::Logger("nodepool.driver.testing"));
  group.Spawn("first creation", CreateAndKeepOutcome(machines, first, created[0]));
  group.Spawn("second creation", CreateAndKeepOutcome(machines, second, created[1]));
  auto stop = [&group] { return group.Stop(); };
  co_await WithCleanup(group.Join(), stop);
  for (const Outcome<>& outcome : created) {
    if (!outcome) Fail("one of two creations at a time failed: " + outcome.error().message());
  }
  const boost::json::value one = first->recorder.external_id, other = second->recorder.external_id;
  co_await machines.Remove(first);
  std::vector<Resource> left;
  bool lists_machines = machines.subject().lists_machines;
  if (lists_machines) left = co_await machines.Listed(second);
  co_await machines.Remove(second);
  Expect(one != other, "two machines have the same id");
  Expect(!lists_machines || !left.empty(), "deleting one machine deleted another");
  co_return "";
}

// Evenly chosen awaits of an operation that has this many turns.
std::vector<int> Points(int most, int turns) {
  std::vector<int> points;
  int wanted = most > 0 ? std::min(most, turns + 1) : turns + 1;
  for (int i = 0; i < wanted; ++i) points.push_back(i * (turns + 1) / wanted);
  return points;
}

Task<> Interrupt(Loop& loop, std::shared_ptr<Interruption> interruption) {
  if (!interruption->ended.is_set()) interruption->Interrupt();
  SteadyTime deadline = loop.SteadyNow() + kEndLimit;
  co_await EndsBy(loop, deadline, "a task that was cancelled", interruption->ended.Wait());
}

// Runs `task` to its end, cancelled after this many turns. If the caller is cancelled, so is the task.
Task<std::shared_ptr<Interruption>> Interrupted(Machines& machines, Task<> task, int turns,
                                                std::string what) {
  const Subject& subject = machines.subject();
  std::shared_ptr<Interruption> interruption = StartInterrupted(subject.loop, std::move(task), turns);
  SteadyTime deadline = subject.loop.SteadyNow() + subject.call_timeout;
  auto interrupt = [&](const Failure&) { return Interrupt(subject.loop, interruption); };
  Task<bool> end = EndsBy(subject.loop, deadline, what, interruption->ended.Wait());
  bool has_ended = co_await OnFailure(std::move(end), interrupt);
  if (!has_ended) Fail(fmt::format("{} that was cancelled after {} turns does not end", what, turns));
  co_return interruption;
}

Task<std::string> CancelledCreations(Machines& machines) {
  MachinePtr whole = machines.New();
  auto uninterrupted =
      co_await Interrupted(machines, machines.CreateUnbounded(whole), Interruption::kNever, "a creation");
  int turns = uninterrupted->turns;
  co_await machines.Remove(whole);
  for (int point : Points(machines.subject().most_cancellations, turns)) {
    MachinePtr machine = machines.New();
    co_await Interrupted(machines, machines.CreateUnbounded(machine), point, "a creation");
    co_await machines.Remove(machine);
  }
  co_return "";
}

Task<std::string> CancelledDeletions(Machines& machines) {
  MachinePtr whole = machines.New();
  co_await machines.Create(whole);
  auto uninterrupted =
      co_await Interrupted(machines, machines.DeleteUnbounded(whole), Interruption::kNever, "a deletion");
  int turns = uninterrupted->turns;
  co_await machines.Remove(whole);
  for (int point : Points(machines.subject().most_cancellations, turns)) {
    MachinePtr machine = machines.New();
    co_await machines.Create(machine);
    co_await Interrupted(machines, machines.DeleteUnbounded(machine), point, "a deletion");
    co_await machines.Remove(machine);
  }
  co_return "";
}

Task<> CreateWhileStalled(Machines& machines, MachinePtr machine) {
  machines.subject().stall(true);
  ScopeExit answer([&machines] { machines.subject().stall(false); });
  SteadyTime deadline = machines.subject().loop.SteadyNow() + machines.subject().stall_timeout;
  Task<> create = machines.Create(std::move(machine));
  co_await WithDeadline(machines.subject().loop, deadline, "Create while the cloud is silent",
                        std::move(create));
}

// A cloud that does not answer: calls in progress can be cancelled, and work again later.
Task<std::string> SilentCloud(Machines& machines) {
  const Subject& subject = machines.subject();
  if (!subject.stall) co_return "the cloud cannot be made to stall";
  if (std::string why = subject.why_no_stall ? subject.why_no_stall() : ""; !why.empty()) co_return why;
  MachinePtr machine = machines.New();
  Outcome<> created = co_await Attempt(CreateWhileStalled(machines, machine));
  co_await machines.Remove(machine);
  Expect(!created, "a creation ended well although the cloud did not answer");
  MachinePtr next = machines.New();
  co_await machines.Create(next);
  co_await machines.Remove(next);
  co_return "";
}

// An Error is accepted: the machine may not exist.
Task<> ReadConsole(const Subject& subject, boost::json::value id) {
  SteadyTime deadline = subject.loop.SteadyNow() + subject.call_timeout;
  Task<std::optional<std::string>> read = subject.adapter.ConsoleLog(*subject.label, std::move(id));
  try {
    co_await WithDeadline(subject.loop, deadline, "ConsoleLog", std::move(read));
  } catch (const Error& error) {
    if (error.verdict() == Verdict::kCancelled) throw;
  }
}

Task<std::string> SideCalls(Machines& machines) {
  const Subject& subject = machines.subject();
  subject.adapter.LabelReady(*subject.label);
  co_await machines.Call("AvailabilityZones", subject.adapter.AvailabilityZones());
  boost::json::value gone = "no-such-machine";
  subject.adapter.NotifyNodescanFailure(*subject.label, gone);
  Outcome<> read = co_await Attempt(ReadConsole(subject, gone));
  if (!read)
    Fail("ConsoleLog of a machine that is gone throws something else than Error: " + read.error().message());
  co_return "";
}

constexpr Check kChecks[] = {
    {"a creation tells the id and describes the machine", CreationTellsTheId},
    {"metadata comes back", MetadataComesBack},
    {"lists agree with what happened", ListsAgree},
    {"quota adds up", QuotaAddsUp},
    {"deletion is idempotent", DeletionIsIdempotent},
    {"leaked machines are found and deleted", LeaksAreFound},
    {"a machine is missing only when it is gone", LivingMachinesAreNotMissing},
    {"two machines at a time", TwoAtATime},
    {"creations that are told to stop at any await", CancelledCreations},
    {"deletions that are told to stop at any await", CancelledDeletions},
    {"a cloud that does not answer", SilentCloud},
    {"calls beside the main ones", SideCalls},
};

}  // namespace

std::span<const Check> Checks() { return kChecks; }

}  // namespace nodepool::driver::testing
