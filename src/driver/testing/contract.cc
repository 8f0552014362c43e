#include "driver/testing/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "async/task_group.h"
#include "base/scope_exit.h"
#include "driver/cloud/check_instance.h"
#include "driver/cloud/metadata.h"
#include "driver/testing/interruption.h"
#include "driver/testing/recorder.h"

namespace nodepool::driver::testing {

namespace {

using cloud::CreateParameters;
using cloud::Instance;
using cloud::Resource;

constexpr int kDeleteAttempts = 5;
constexpr Duration kDeletePause = std::chrono::seconds(2);
constexpr Duration kLongestBlock = std::chrono::milliseconds(500);
constexpr Duration kLookInterval = std::chrono::milliseconds(250);

// A machine of a check, from before its creation to after its deletion.
struct Machine {
  NodeId node;
  Recorder recorder;
  Instance instance;
};

[[noreturn]] void Fail(std::string what) { throw Error(Verdict::kFail, std::move(what)); }

void Expect(bool is_so, std::string_view what) {
  if (!is_so) Fail(std::string(what));
}

class Contract {
 public:
  explicit Contract(Subject subject) : subject_(std::move(subject)) {}

  Task<std::vector<CheckResult>> Run();

 private:
  // A check fails by throwing; a text is the reason why it could not be made.
  using Check = Task<std::string> (Contract::*)();

  Task<> RunChecks();
  Task<> RunCheck(std::string name, Check check);
  Task<> TidyUp();
  Task<> WatchLoop();

  Task<std::string> CreationTellsTheId();
  Task<std::string> MetadataComesBack();
  Task<std::string> ListsAgree();
  Task<std::string> QuotaAddsUp();
  Task<std::string> DeletionIsIdempotent();
  Task<std::string> LeaksAreFound();
  Task<std::string> LivingMachinesAreNotMissing();
  Task<std::string> TwoAtATime();
  Task<std::string> CancelledCreations();
  Task<std::string> CancelledDeletions();
  Task<std::string> SilentCloud();
  Task<std::string> SideCalls();

  std::shared_ptr<Machine> NewMachine();
  Task<> Create(std::shared_ptr<Machine> machine);
  Task<> CreateWhileStalled(std::shared_ptr<Machine> machine);
  Task<> CreateUnbounded(std::shared_ptr<Machine> machine);
  Task<> DeleteOnce(std::shared_ptr<Machine> machine);
  Task<> DeleteTwice(std::shared_ptr<Machine> machine);
  Task<> ReadConsole(boost::json::value id);
  Task<> DeleteUnbounded(std::shared_ptr<Machine> machine);
  Task<> Remove(std::shared_ptr<Machine> machine);
  Task<std::vector<Resource>> Listed(std::shared_ptr<Machine> machine);
  Task<std::vector<Instance>> ListInstances();
  Task<std::shared_ptr<Interruption>> Interrupted(Task<> task, int turns, std::string what);
  std::vector<int> Points(int turns) const;

  template <class T>
  Task<T> Bounded(std::string what, Task<T> task) {
    SteadyTime deadline = subject_.loop.SteadyNow() + subject_.call_timeout;
    return WithDeadline(subject_.loop, deadline, std::move(what), std::move(task));
  }

  Subject subject_;
  std::vector<CheckResult> results_;
  Duration longest_block_{0};
  int machines_ = 0;
  std::vector<std::shared_ptr<Machine>> made_;  // by the check under way
};

std::shared_ptr<Machine> Contract::NewMachine() {
  auto machine = std::make_shared<Machine>();
  machine->node = NodeId(fmt::format("{:010}", 9'000'000'000 + ++machines_));
  made_.push_back(machine);
  return machine;
}

Task<> Contract::CreateUnbounded(std::shared_ptr<Machine> machine) {
  CreateParameters parameters;
  parameters.hostname = "np" + machine->node.str();
  parameters.label = subject_.label;
  parameters.pool = subject_.pool;
  parameters.image_external_id = subject_.image_external_id;
  parameters.metadata = cloud::MetadataOf(machine->node, subject_.pool->name, subject_.provider);
  parameters.request_id = RequestId("200-0000000001");
  parameters.request.node_types = {subject_.label->name};
  machine->instance = co_await subject_.adapter.Create(machine->recorder, std::move(parameters));
}

Task<> Contract::Create(std::shared_ptr<Machine> machine) {
  return Bounded("a creation", CreateUnbounded(std::move(machine)));
}

Task<> Contract::DeleteUnbounded(std::shared_ptr<Machine> machine) {
  Recorder recorder;
  co_await cloud::EnsureGone(subject_.adapter.Delete(recorder, machine->recorder.external_id));
}

Task<> Contract::DeleteOnce(std::shared_ptr<Machine> machine) {
  return Bounded("a deletion", DeleteUnbounded(std::move(machine)));
}

Task<> Contract::DeleteTwice(std::shared_ptr<Machine> machine) {
  co_await DeleteOnce(machine);
  co_await DeleteOnce(machine);
}

Task<std::vector<Instance>> Contract::ListInstances() {
  return Bounded("ListInstances", subject_.adapter.ListInstances());
}

// What the adapter lists of the machine's node.
Task<std::vector<Resource>> Contract::Listed(std::shared_ptr<Machine> machine) {
  std::vector<Resource> all = co_await Bounded("ListResources", subject_.adapter.ListResources());
  std::vector<Resource> own;
  for (Resource& resource : all) {
    cloud::CheckResource(resource);
    cloud::Owner owner = cloud::OwnerOf(resource.metadata);
    if (owner.provider == subject_.provider.str() && owner.node == machine->node)
      own.push_back(std::move(resource));
  }
  co_return own;
}

// As the framework does in the end: by the id if there is one, else by what is listed.
Task<> Contract::Remove(std::shared_ptr<Machine> machine) {
  for (int attempt = 1; !machine->recorder.external_id.is_null(); ++attempt) {
    Outcome<> deleted = co_await Attempt(DeleteOnce(machine));
    if (deleted) break;
    if (attempt == kDeleteAttempts) deleted.error().Rethrow();
    co_await subject_.loop.SleepFor(kDeletePause);
  }
  if (!subject_.lists_machines) co_return;
  std::vector<Resource> left = co_await Listed(machine);
  for (Resource& resource : left)
    co_await Bounded("DeleteResource", subject_.adapter.DeleteResource(std::move(resource)));
  // A cloud may take its time, as long as it ends.
  SteadyTime deadline = subject_.loop.SteadyNow() + subject_.call_timeout;
  for (left = co_await Listed(machine); !left.empty() && subject_.loop.SteadyNow() < deadline;) {
    co_await subject_.loop.SleepFor(kDeletePause);
    left = co_await Listed(machine);
  }
  Expect(left.empty(),
         "something of a machine is still listed after it was deleted, and deleted again as a leak");
}

Task<std::string> Contract::CreationTellsTheId() {
  std::shared_ptr<Machine> machine = NewMachine();
  co_await Create(machine);
  const boost::json::value id = machine->recorder.external_id;
  const Instance instance = machine->instance;
  co_await Remove(machine);
  Expect(!id.is_null(), "Create ended without having told the id with SetExternalId");
  Expect(instance.external_id.is_null() || instance.external_id == id,
         "the instance has another id than the one told with SetExternalId");
  cloud::CheckInstance(instance);
  const auto& port = instance.connection.connection_port;
  bool has_no_keys = port && port->is_object();
  Expect(!subject_.label->host_key_checking || instance.interface_ip || instance.host_keys || has_no_keys,
         "the instance has neither an address at which its host keys could be read nor the keys");
  co_return "";
}

Task<std::string> Contract::MetadataComesBack() {
  if (!subject_.lists_machines) co_return "the adapter lists nothing";
  std::shared_ptr<Machine> machine = NewMachine();
  co_await Create(machine);
  auto wanted = cloud::MetadataOf(machine->node, subject_.pool->name, subject_.provider);
  auto has_all = [&wanted](const std::map<std::string, std::string>& metadata) {
    return std::ranges::all_of(wanted, [&](const auto& entry) {
      auto found = metadata.find(entry.first);
      return found != metadata.end() && found->second == entry.second;
    });
  };
  std::vector<Resource> resources = co_await Listed(machine);
  std::vector<Instance> instances = co_await ListInstances();
  co_await Remove(machine);
  Expect(!resources.empty(), "ListResources does not tell of a machine by the node's id in its metadata");
  Expect(std::ranges::any_of(resources, has_all, &Resource::metadata),
         "ListResources gives other metadata than the machine was made with");
  Expect(std::ranges::any_of(instances, has_all, &Instance::metadata),
         "ListInstances does not tell of a machine by the metadata that it was made with");
  co_return "";
}

Task<std::string> Contract::ListsAgree() {
  if (!subject_.lists_machines) co_return "the adapter lists nothing";
  std::shared_ptr<Machine> machine = NewMachine();
  co_await Create(machine);
  std::vector<Instance> instances = co_await ListInstances();
  std::vector<Instance> again = co_await ListInstances();
  std::vector<Resource> resources = co_await Listed(machine);
  boost::json::value id = machine->recorder.external_id;
  co_await DeleteOnce(machine);
  std::vector<Instance> after = co_await ListInstances();
  std::vector<Resource> left = co_await Listed(machine);
  co_await Remove(machine);
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

Task<std::string> Contract::QuotaAddsUp() {
  QuotaInformation need = subject_.adapter.QuotaForLabel(*subject_.label);
  for (const auto& [resource, amount] : need.resources()) {
    Expect(std::isfinite(amount) && amount >= 0, "QuotaForLabel tells " + resource + " that is no amount");
  }
  QuotaInformation limits = co_await Bounded("QuotaLimits", subject_.adapter.QuotaLimits());
  for (const auto& [resource, amount] : limits.resources()) {
    Expect(!std::isnan(amount) && amount >= 0, "QuotaLimits tells " + resource + " that is no limit");
  }
  limits.Subtract(need);
  Expect(limits.NonNegative(), "one node of the label exceeds what QuotaLimits tells");
  std::shared_ptr<Machine> machine = NewMachine();
  co_await Create(machine);
  std::vector<Instance> instances;
  if (subject_.lists_machines) instances = co_await ListInstances();
  Resources made = machine->instance.quota.resources();
  boost::json::value id = machine->recorder.external_id;
  co_await Remove(machine);
  Expect(made == need.resources(),
         "the instance uses other amounts than QuotaForLabel has told for its label");
  for (const Instance& instance : instances) {
    Expect(instance.external_id != id || instance.quota.resources() == made,
           "ListInstances tells other amounts for a machine than Create did");
  }
  co_return "";
}

Task<std::string> Contract::DeletionIsIdempotent() {
  std::shared_ptr<Machine> machine = NewMachine();
  co_await Create(machine);
  co_await DeleteOnce(machine);
  Outcome<> again = co_await Attempt(DeleteTwice(machine));
  co_await Remove(machine);
  if (!again)
    Fail("deleting a machine that is gone is neither success nor kNotFound: " + again.error().message());
  co_return "";
}

Task<std::string> Contract::LeaksAreFound() {
  if (!subject_.lists_machines) co_return "the adapter lists nothing";
  std::shared_ptr<Machine> machine = NewMachine();
  co_await Create(machine);
  machine->recorder.external_id = nullptr;  // nobody remembers it
  std::vector<Resource> leaked = co_await Listed(machine);
  co_await Remove(machine);
  Expect(!leaked.empty(), "a machine that nobody remembers is not listed");
  for (Resource& resource : leaked) {
    Task<> deletion = cloud::EnsureGone(subject_.adapter.DeleteResource(resource));
    Outcome<> deleted = co_await Attempt(Bounded("DeleteResource", std::move(deletion)));
    if (!deleted)
      Fail("deleting a leaked " + resource.type +
           " that is gone is neither success nor kNotFound: " + deleted.error().message());
  }
  co_return "";
}

Task<std::string> Contract::LivingMachinesAreNotMissing() {
  std::shared_ptr<Machine> machine = NewMachine();
  co_await Create(machine);
  const std::vector<boost::json::value> ids = {machine->recorder.external_id};
  std::vector<boost::json::value> missing =
      co_await Bounded("MissingMachines", subject_.adapter.MissingMachines(ids));
  co_await DeleteOnce(machine);
  std::vector<boost::json::value> gone =
      co_await Bounded("MissingMachines", subject_.adapter.MissingMachines(ids));
  co_await Remove(machine);
  Expect(missing.empty(), "MissingMachines names a machine that exists");
  Expect(gone.empty() || gone == ids, "MissingMachines names machines that were not asked for");
  co_return "";
}

Task<std::string> Contract::TwoAtATime() {
  std::shared_ptr<Machine> first = NewMachine();
  std::shared_ptr<Machine> second = NewMachine();
  TaskGroup group(subject_.loop, log::Logger("nodepool.driver.testing"));
  group.Spawn("first creation", Create(first));
  group.Spawn("second creation", Create(second));
  co_await group.Join();
  const boost::json::value one = first->recorder.external_id, other = second->recorder.external_id;
  co_await Remove(first);
  std::vector<Resource> left;
  if (subject_.lists_machines) left = co_await Listed(second);
  co_await Remove(second);
  Expect(!one.is_null() && !other.is_null(), "one of two creations at a time failed");
  Expect(one != other, "two machines have the same id");
  Expect(!subject_.lists_machines || !left.empty(), "deleting one machine deleted another");
  co_return "";
}

// Some of the awaits of an operation that has so many turns.
std::vector<int> Contract::Points(int turns) const {
  std::vector<int> points;
  int wanted = subject_.most_cancellations > 0 ? std::min(subject_.most_cancellations, turns + 1) : turns + 1;
  for (int i = 0; i < wanted; ++i) points.push_back(i * (turns + 1) / wanted);
  return points;
}

Task<std::shared_ptr<Interruption>> Contract::Interrupted(Task<> task, int turns, std::string what) {
  std::shared_ptr<Interruption> interruption = StartInterrupted(subject_.loop, std::move(task), turns);
  Outcome<> ended = co_await Attempt(Bounded(what, interruption->ended.Wait()));
  if (!ended) Fail(fmt::format("{} that was told to stop after {} turns does not end", what, turns));
  co_return interruption;
}

Task<std::string> Contract::CancelledCreations() {
  std::shared_ptr<Machine> whole = NewMachine();
  auto uninterrupted = co_await Interrupted(CreateUnbounded(whole), Interruption::kNever, "a creation");
  int turns = uninterrupted->turns;
  co_await Remove(whole);
  for (int point : Points(turns)) {
    std::shared_ptr<Machine> machine = NewMachine();
    co_await Interrupted(CreateUnbounded(machine), point, "a creation");
    co_await Remove(machine);
  }
  co_return "";
}

Task<std::string> Contract::CancelledDeletions() {
  std::shared_ptr<Machine> whole = NewMachine();
  co_await Create(whole);
  auto uninterrupted = co_await Interrupted(DeleteUnbounded(whole), Interruption::kNever, "a deletion");
  int turns = uninterrupted->turns;
  for (int point : Points(turns)) {
    std::shared_ptr<Machine> machine = NewMachine();
    co_await Create(machine);
    co_await Interrupted(DeleteUnbounded(machine), point, "a deletion");
    co_await Remove(machine);
  }
  co_return "";
}

Task<> Contract::CreateWhileStalled(std::shared_ptr<Machine> machine) {
  subject_.stall(true);
  ScopeExit answer([this] { subject_.stall(false); });
  co_await Create(std::move(machine));
}

// A cloud that does not answer: what was begun can be ended, and works again later.
Task<std::string> Contract::SilentCloud() {
  if (!subject_.stall) co_return "the cloud cannot be made to stall";
  std::shared_ptr<Machine> machine = NewMachine();
  Outcome<> created = co_await Attempt(CreateWhileStalled(machine));
  co_await Remove(machine);
  Expect(!created, "a creation ended well although the cloud did not answer");
  std::shared_ptr<Machine> next = NewMachine();
  co_await Create(next);
  co_await Remove(next);
  co_return "";
}

Task<std::string> Contract::SideCalls() {
  subject_.adapter.LabelReady(*subject_.label);
  co_await Bounded("AvailabilityZones", subject_.adapter.AvailabilityZones());
  boost::json::value gone = "no-such-machine";
  subject_.adapter.NotifyNodescanFailure(*subject_.label, gone);
  Outcome<> read = co_await Attempt(ReadConsole(gone));
  if (!read)
    Fail("ConsoleLog of a machine that is gone throws something else than Error: " + read.error().message());
  co_return "";
}

// An Error is fine: there may be no such machine.
Task<> Contract::ReadConsole(boost::json::value id) {
  try {
    co_await Bounded("ConsoleLog", subject_.adapter.ConsoleLog(*subject_.label, std::move(id)));
  } catch (const Error& error) {
    if (error.verdict() == Verdict::kCancelled) throw;
  }
}

Task<> Contract::WatchLoop() {
  while (true) {
    SteadyTime due = subject_.loop.SteadyNow() + kLookInterval;
    co_await subject_.loop.SleepUntil(due);
    longest_block_ = std::max(longest_block_, subject_.loop.SteadyNow() - due);
  }
}

// What a failed check has left.
Task<> Contract::TidyUp() {
  for (const std::shared_ptr<Machine>& machine : std::exchange(made_, {})) {
    co_await Attempt(Remove(machine));
  }
}

Task<> Contract::RunCheck(std::string name, Check check) {
  CheckResult result;
  result.check = std::move(name);
  Outcome<std::string> done = co_await Attempt((this->*check)());
  result.detail = done ? *done : done.error().message();
  if (!done) {
    result.status = CheckResult::Status::kFailed;
    co_await TidyUp();
  } else if (!result.detail.empty()) {
    result.status = CheckResult::Status::kSkipped;
  }
  made_.clear();
  results_.push_back(std::move(result));
}

Task<> Contract::RunChecks() {
  const std::vector<std::pair<std::string, Check>> checks = {
      {"a creation tells the id and describes the machine", &Contract::CreationTellsTheId},
      {"metadata comes back", &Contract::MetadataComesBack},
      {"lists agree with what happened", &Contract::ListsAgree},
      {"quota adds up", &Contract::QuotaAddsUp},
      {"deletion is idempotent", &Contract::DeletionIsIdempotent},
      {"leaked machines are found and deleted", &Contract::LeaksAreFound},
      {"a machine is missing only when it is gone", &Contract::LivingMachinesAreNotMissing},
      {"two machines at a time", &Contract::TwoAtATime},
      {"creations that are told to stop at any await", &Contract::CancelledCreations},
      {"deletions that are told to stop at any await", &Contract::CancelledDeletions},
      {"a cloud that does not answer", &Contract::SilentCloud},
      {"calls beside the main ones", &Contract::SideCalls},
  };
  for (const auto& [name, check] : checks) co_await RunCheck(name, check);
}

Task<std::vector<CheckResult>> Contract::Run() {
  TaskGroup watch(subject_.loop, log::Logger("nodepool.driver.testing"));
  watch.Spawn("watch the loop", WatchLoop());
  auto stop = [&watch] { return watch.Stop(); };
  co_await WithCleanup(RunChecks(), stop);
  CheckResult block{.check = "nothing blocks the loop"};
  if (longest_block_ > kLongestBlock) {
    block.status = CheckResult::Status::kFailed;
    block.detail = fmt::format("the loop was blocked for {:.1f} s",
                               std::chrono::duration<double>(longest_block_).count());
  }
  results_.push_back(std::move(block));
  co_return std::move(results_);
}

}  // namespace

Task<std::vector<CheckResult>> RunContract(Subject subject) {
  Contract contract(std::move(subject));
  std::vector<CheckResult> results = co_await contract.Run();
  co_return results;
}

}  // namespace nodepool::driver::testing
