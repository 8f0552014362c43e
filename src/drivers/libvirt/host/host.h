#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "async/event.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/scope_exit.h"
#include "driver/cloud/api/list_cache.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/host/hypervisor.h"
#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt {

class Host;

// A machine whose address is looked for.
struct AddressSearch {
  std::string uuid;
  std::string mac;
  MachineNetwork network;  // a libvirt network or a bridge
};

// The addresses that machines of a host have been given. A network is asked for all waiting machines
// together, and not at all while none waits, since no event announces an address: a libvirt network for its
// leases, of a bridge the guest agents, and where they know nothing the ARP table.
class Addresses {
 public:
  // Everything outlives this object.
  Addresses(TaskGroup& tasks, Random& random, log::Logger logger, Host& host);

  // The address of the interface, IPv4 if it has both. `check` is called at each reading; what it throws ends
  // the wait. While the host cannot be reached it goes on. LaunchError(kNetwork): another running machine has
  // the address.
  Task<std::string> Wait(AddressSearch search, std::function<void()> check);

  // Notes an address that was found otherwise. LaunchError(kNetwork): another running machine has it.
  void Claim(const MachineNetwork& network, const std::string& address, const std::string& uuid);

 private:
  using List = driver::cloud::api::ListCache<std::vector<KnownAddress>>;
  struct Searched {
    std::unique_ptr<List> list;
    std::map<std::string, AddressSearch> searches;  // by UUID
    std::map<std::string, std::string> owners;  // UUIDs of machines by the address that was found for them
    SteadyTime last_begun{};
  };

  Searched& Of(const MachineNetwork& network);
  Task<std::vector<KnownAddress>> ReadLeases(Searched& searched, std::string network);
  Task<std::vector<KnownAddress>> ReadMachines(Searched& searched);
  Task<std::vector<KnownAddress>> ReadMachine(std::string uuid);

  TaskGroup& tasks_;
  Random& random_;
  log::Logger logger_;
  Host& host_;
  std::map<std::string, Searched> bridges_;
  std::map<std::string, Searched> networks_;
};

// The address of the interface by which others can reach it; empty: none is known.
std::string AddressIn(const std::vector<KnownAddress>& addresses, const std::string& mac);

// Metadata of a domain: the port of its host at which it is reached.
inline constexpr const char* kPortKey = "nodepool_port";

// One of a host's ports for machines, 22000 to 22999, that is not taken; none: all are. Any of them, since
// ports that another program has are often neighbours.
std::optional<int> FreePort(const std::set<int>& taken, Random& random);

// Ports of a host that something else has had: left out for a while by all machines.
class RefusedPorts {
 public:
  void Add(int port, SteadyTime now);
  std::set<int> At(SteadyTime now);

 private:
  std::map<int, SteadyTime> until_;
};

// Whether a machine could not be started since something else has its port.
bool IsPortTaken(const Error& error);

// Where a host binds forwarded ports that are reached at `address`; "": at all of its addresses.
std::string BindAddress(const std::string& address);

// Calls that make something of a machine. A call goes on when the task that awaits it is cancelled, since the
// host carries it out anyway; a deletion first waits for its end.
class MachineWork {
 public:
  // The tasks belong to `tasks`, which outlives this object.
  explicit MachineWork(TaskGroup& tasks) : tasks_(tasks) {}

  // Awaits `call` as work on the machine.
  template <class T>
  Task<T> Run(std::string uuid, Task<T> call) {
    if (tasks_.stopping()) throw Error(Verdict::kCancelled, "the provider was stopped");
    auto end = std::make_shared<OneShot<Outcome<T>>>();
    ++under_way_[uuid];
    tasks_.Spawn("call for machine " + uuid, Carry(uuid, std::move(call), end));
    Outcome<T> outcome = co_await end->Take();
    if (!outcome) outcome.error().Rethrow();
    if constexpr (!std::is_void_v<T>) co_return std::move(*outcome);
  }

  // Ends when nothing is under way for the machine.
  Task<> Settled(std::string uuid) {
    while (under_way_.contains(uuid)) co_await ended_.Wait();
  }

 private:
  template <class T>
  Task<> Carry(std::string uuid, Task<T> call, std::shared_ptr<OneShot<Outcome<T>>> end) {
    ScopeExit leave([&] {
      end->Set(std::unexpected(Failure(Error(Verdict::kCancelled, "the provider was stopped"))));
      if (--under_way_[uuid] == 0) under_way_.erase(uuid);
      ended_.NotifyAll();
    });
    Outcome<T> outcome = co_await Attempt(std::move(call));
    end->Set(std::move(outcome));
  }

  TaskGroup& tasks_;
  std::map<std::string, int> under_way_;  // by UUID
  WaitList ended_;
};

// The machines of a host that QEMU has paused, since their disks could not be written, and libvirt's word for
// why.
class PausedMachines {
 public:
  void Add(const std::string& uuid, std::string reason) { reasons_[uuid] = std::move(reason); }
  void Remove(const std::string& uuid) { reasons_.erase(uuid); }

  // Null: it is not paused.
  const std::string* ReasonOf(const std::string& uuid) const {
    auto found = reasons_.find(uuid);
    return found == reasons_.end() ? nullptr : &found->second;
  }
  // The UUIDs of those that lack room on the host's disk.
  std::vector<std::string> LackingRoom() const {
    std::vector<std::string> uuids;
    for (const auto& [uuid, reason] : reasons_) {
      if (reason == "enospc") uuids.push_back(uuid);
    }
    return uuids;
  }

 private:
  std::map<std::string, std::string> reasons_;  // by UUID
};

// Told of what a host notices.
class HostListener {
 public:
  virtual ~HostListener() = default;
  // It can be used, or no longer.
  virtual void HostChanged(Host& host) = 0;
  // Its domains were listed; also after HostChanged.
  virtual void HostMeasured(Host& host) = 0;
  // A domain that Nodepool has not made has started or ended there, or possibly one that another process of
  // Nodepool has made.
  virtual void ForeignChanged(Host& host) = 0;
  // A machine that Nodepool has made has ended there, and is not being deleted.
  virtual void MachineLost(Host& host) = 0;
  // As of HypervisorListener.
  virtual void CallEnded(Host& host, const char* call, Duration took, bool is_ok) = 0;
};

// One host of a provider: keeps its connection open, and knows whether it can be used.
class Host : private HypervisorListener {
 public:
  // The host's tasks belong to `tasks`; that, `random` and the listener outlive the host.
  Host(TaskGroup& tasks, Random& random, HostConfig config, const MakeHypervisor& make, log::Logger logger,
       HostListener& listener);

  // Begins to connect, unless it has begun.
  void Start();
  // Ends when the first attempt to connect has ended.
  Task<> Tried();

  const std::string& name() const { return config_.name; }
  const HostConfig& config() const { return config_; }
  // Why it cannot be used; nullopt: it can.
  const std::optional<Error>& fault() const { return fault_; }
  // Of the last connection.
  const HostSize& size() const { return size_; }
  bool uses_kvm() const;
  // To be called when a machine's host keys could not be read and its console is known. Logs once that a KVM
  // which the host offers runs no kernel.
  void NoteFailedBoot(const std::string& console);

  // Throws fault() with the host's name where there is one.
  Hypervisor& Use();
  MachineWork& work() { return work_; }
  // Awaits step(hypervisor) and, where the connection was lost meanwhile, again as soon as it is back. For
  // steps that may be carried out twice. Waits for a host that cannot be reached. Error(kQuota): it cannot be
  // used until an operator has mended something; other faults are those of the step.
  template <class Step, class Result = std::invoke_result_t<Step, Hypervisor&>>
  Result AcrossLosses(Step step);

  Addresses& addresses() { return addresses_; }
  RefusedPorts& refused_ports() { return refused_ports_; }

  // The last list.
  const std::vector<DomainInfo>& listed() const { return domains_; }
  // Active domains, also foreign ones. Of a host that cannot be used now its last list.
  Task<std::vector<DomainInfo>> Domains();
  // The last list if it was read a few seconds ago, else as Domains().
  Task<std::vector<DomainInfo>> RecentDomains();
  // Whether the domain is in the last list, which each new connection begins with.
  bool IsListed(const std::string& uuid) const { return FindListed(uuid) != nullptr; }
  // From now on the host notes whether the machine ends.
  void Watch(const std::string& uuid) { has_ended_[uuid] = false; }
  // It is being deleted until Unwatch().
  void ExpectEnd(const std::string& uuid) { expected_ends_.insert(uuid); }
  void Unwatch(const std::string& uuid) {
    expected_ends_.erase(uuid);
    has_ended_.erase(uuid);
    paused_.Remove(uuid);
  }
  bool HasEnded(const std::string& uuid) const {
    auto machine = has_ended_.find(uuid);
    return machine != has_ended_.end() && machine->second;
  }

  // Whether this process has started the machine, and it has neither ended nor been deleted.
  bool IsRunning(const std::string& uuid) const { return has_ended_.contains(uuid) && !HasEnded(uuid); }

  // Of the machines that Nodepool has made.
  const PausedMachines& paused() const { return paused_; }
  // Whether its storage pool is so full that a machine could not go on.
  bool IsFull() const { return !paused_.LackingRoom().empty(); }
  // Lets such machines continue once the pool has room again.
  Task<> ResumePaused();

  Task<> Stop();

 private:
  Task<> KeepConnected();
  Task<> Open();
  // Ends when the host can be used. Error(kQuota): not before an operator has mended something.
  Task<> Reached();
  Task<std::vector<DomainInfo>> ReadDomains();
  void NoteWhatEnded();
  void ConnectionLost(std::string why) override;
  void DomainStarted(std::string uuid) override;
  void DomainEnded(std::string uuid) override;
  void DomainPaused(std::string uuid, std::string reason) override;
  void CallEnded(const char* call, Duration took, bool is_ok) override;
  // Null: it is not in the last list.
  const DomainInfo* FindListed(const std::string& uuid) const;
  // Whether Nodepool has made the domain, by what is watched and by the last list.
  bool IsOurs(const std::string& uuid) const;
  std::string NameOf(const std::string& uuid) const;
  void Report(std::optional<Error> fault);

  TaskGroup& tasks_;
  Random& random_;
  HostConfig config_;
  std::unique_ptr<Hypervisor> hypervisor_;
  log::Logger logger_;
  HostListener& listener_;
  std::optional<Error> fault_ = Error(Verdict::kRetry, "it was not connected to yet");
  HostSize size_;
  std::vector<DomainInfo> domains_;        // the last list
  std::optional<SteadyTime> listed_at_;    // none: there is no list yet
  std::map<std::string, bool> has_ended_;  // machines that are watched, by UUID
  std::set<std::string> expected_ends_;    // UUIDs
  PausedMachines paused_;
  MachineWork work_;
  Addresses addresses_;
  RefusedPorts refused_ports_;
  int losses_ = 0;  // of the connection
  WaitList changed_fault_;
  bool is_kvm_suspected_ = false;
  bool is_started_ = false;
  Event tried_{"the first connection to a host"};
  Event lost_{"the connection to a host to break"};
};

template <class Step, class Result>
Result Host::AcrossLosses(Step step) {
  while (true) {
    co_await Reached();
    int losses = losses_;
    Result work = step(Use());
    auto outcome = co_await Attempt(std::move(work));
    if (!outcome && FailedWith(outcome, Verdict::kRetry) && losses != losses_) continue;
    if (!outcome) outcome.error().Rethrow();
    if constexpr (!std::is_void_v<typename decltype(outcome)::value_type>) co_return std::move(*outcome);
    if constexpr (std::is_void_v<typename decltype(outcome)::value_type>) co_return;
  }
}

// The hosts of one provider, in the order of the configuration; at least one.
class Hosts {
 public:
  // Everything outlives it. No host is contacted before Connected().
  Hosts(TaskGroup& tasks, Random& random, const LibvirtConfig& config, const MakeHypervisor& make,
        const log::Logger& logger, HostListener& listener);

  auto begin() const { return hosts_.begin(); }
  auto end() const { return hosts_.end(); }
  std::size_t size() const { return hosts_.size(); }
  Host& operator[](std::size_t index) const { return *hosts_[index]; }

  // Connects to every host unless that has begun; ends when each was tried once. To be awaited before hosts
  // are used.
  Task<> Connected();
  // Error(kFail): the configuration no longer has this host.
  Host& At(const std::string& name) const;
  std::vector<Host*> Usable() const;
  Task<> Stop();

 private:
  std::string provider_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace nodepool::drivers::libvirt
