#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "base/clock.h"
#include "base/ids.h"
#include "model/breaker.h"
#include "model/node.h"
#include "process/command.h"

namespace nodepool::driver {

// How one attempt to launch a node ended, in the terms of metrics (launcher.md 27.2).
struct LaunchOutcome {
  ProviderName provider;
  NodeId node;
  RequestId request;
  std::optional<std::string> az;
  std::optional<std::string> requestor;
  // "ready", "error.quota", "error.keyscan" ...: the last part of the metric's name.
  std::string result;
  Duration duration{};            // since the first attempt for this node began
  std::string machine_type = {};  // of the machine, if one was created (cloud::Instance); empty: not known
  // What was launched, where and since when: evidence for breakers (breaker.md 1).
  PoolName pool = {};
  LabelName label = {};
  SteadyTime begun{};  // the attempt
  // Why it failed. None: it did not, or its failure says nothing about launches, such as a lost session or an
  // outage of the cloud.
  std::optional<FailureKind> failure = std::nullopt;
  std::string said = {};  // the error; no secrets
};

// A finished call of a cloud's API.
struct ApiCall {
  ProviderName provider;
  std::string driver;
  std::string service;        // "compute"
  std::string method;         // "GET"
  std::string name;           // the operation, without ids: "servers_detail"
  std::optional<int> status;  // of the answer; none: no answer
  Duration duration{};
};

// At which rate a service of a cloud is called.
struct ApiRate {
  ProviderName provider;
  std::string driver;
  std::string budget;  // the service, or the part of its calls that it counts together: "ec2 changes"
  // Of the usual rate, up to 1; lower after refusals because of too many calls, slow answers and calls
  // without an answer.
  double share = 1;
  std::size_t waiting = 0;  // calls that wait for their turn
};

// What came of one candidate of a launch (cloud::Adapter::Candidates).
struct CandidateOutcome {
  ProviderName provider;
  std::string candidate;
  bool is_created = false;  // else the cloud had no capacity for it
};

// A host of a provider that has hosts of its own, and what runs there now, also what Nodepool has not made.
struct HostUse {
  ProviderName provider;
  std::string host;
  bool is_up = false;  // machines can be made there
  double instances = 0;
  double cores = 0;
  double memory = 0;  // MiB
};

// A finished call of a host's own API.
struct HostCall {
  ProviderName provider;
  std::string host;
  std::string call;    // what it does, one word: "start"
  bool is_ok = false;  // else refused, or without an answer in time
  Duration duration{};
};

// Notified of what providers do, for metrics. Called on the loop; must not throw.
class ProviderObserver {
 public:
  virtual ~ProviderObserver() = default;
  virtual void LaunchAttemptEnded(const LaunchOutcome& /*outcome*/) {}
  // Asked after a failed attempt of which the launch has more: false if another pool should serve the
  // request.
  virtual bool IsWorthAnotherAttempt(const LaunchOutcome& /*failed*/) { return true; }
  // One sweep deleted this number of leaked resources of a kind; `kind` is plural, e.g. "instances"
  // (launcher.md 27.6).
  virtual void LeakedResourcesDeleted(const ProviderName& /*provider*/, const std::string& /*kind*/,
                                      int /*count*/) {}
  virtual void ApiCallEnded(const ApiCall& /*call*/) {}
  virtual void ApiRateChanged(const ApiRate& /*rate*/) {}
  virtual void CandidateTried(const CandidateOutcome& /*outcome*/) {}
  // The cloud takes the machine of a node away, or has done so; each node is reported once.
  virtual void MachineTaken(const ProviderName& /*provider*/, bool /*is_in_use*/) {}
  // A ready node did not stand a further check, and is deleted; `reason` is one word (CheckFailure).
  virtual void ReadyNodeFailed(const ProviderName& /*provider*/, std::string_view /*reason*/) {}
  // Whenever a host was asked, was lost or is back.
  virtual void HostMeasured(const HostUse& /*use*/) {}
  // A provider begins to use a host, and ends to use it. One whose configuration has changed still uses its
  // hosts for a while when its successor has begun: a host is gone when it was removed as often as it was
  // added.
  virtual void HostAdded(const ProviderName& /*provider*/, const std::string& /*host*/) {}
  virtual void HostRemoved(const ProviderName& /*provider*/, const std::string& /*host*/) {}
  virtual void HostCallEnded(const HostCall& /*call*/) {}
};

// Counts what one sweep deletes, and at the end reports a number for each kind to the observer, also when the
// sweep is interrupted.
class LeakTally {
 public:
  // `observer` may be null; it and `provider` outlive this.
  LeakTally(ProviderObserver* observer, const ProviderName& provider)
      : observer_(observer), provider_(provider) {}
  ~LeakTally() {
    if (observer_ == nullptr) return;
    for (const auto& [kind, count] : counts_) observer_->LeakedResourcesDeleted(provider_, kind, count);
  }
  LeakTally(const LeakTally&) = delete;
  LeakTally& operator=(const LeakTally&) = delete;

  void Add(const std::string& kind) { ++counts_[kind]; }

 private:
  ProviderObserver* observer_;
  const ProviderName& provider_;
  std::map<std::string, int> counts_;
};

}  // namespace nodepool::driver

namespace nodepool::process {

class Runner;  // process/command.h

}  // namespace nodepool::process

namespace nodepool::store {

struct Store;

}  // namespace nodepool::store

namespace nodepool::driver {

struct RecordsEnvironment;  // driver/records_environment.h

// Why a provider cannot be used now.
struct ProviderFault {
  // For operators: what was tried, at which address, and what came of it. No secrets, and the same
  // text each time for the same cause.
  std::string cause;
  std::optional<SteadyTime> next_attempt = std::nullopt;  // none: it is not known
  // Nodes cannot be launched meanwhile, which says nothing about them (drivers.md 3): requests wait until it
  // is over, or go elsewhere. Otherwise the last known state of the cloud stays in use.
  bool is_outage = false;
};

// What every part of a driver may use of the process. Everything outlives the part.
struct DriverEnvironment {
  Loop& loop;
  Random& random;
  BlockingPool& blocking_pool;
};

// What the tools of a command may use besides.
struct ToolsEnvironment : DriverEnvironment {
  // For drivers that work with records instead of a cloud.
  store::Store& store;
};

// What a provider may use besides.
struct ProviderEnvironment : DriverEnvironment {
  // For drivers that work with records instead of a cloud, and for the cloud framework.
  const RecordsEnvironment& records;
  // To be called when capacity may have changed for a reason that the node records
  // do not show: quota was re-read, an image appeared. Waiting requests are considered
  // again; without the call, up to a second after something else happens (D-111). Cheap; may be called from
  // anywhere on the loop.
  std::function<void()> capacity_changed;
  // Null when nobody wants to know.
  ProviderObserver* observer = nullptr;
  // To be called after each attempt to reach what the provider's machines come from, if nothing but
  // that attempt shows whether the provider can be used: with a fault, or with none after a success.
  // The launcher logs it once and is not ready while there is a fault. Cheap; may be called from
  // anywhere on the loop. The cloud framework calls it for its adapters.
  std::function<void(const std::optional<ProviderFault>&)> report_fault =
      [](const std::optional<ProviderFault>&) {};
  // To be called when that has changed which operators should know of although the provider can be used, such
  // as hosts that do not answer: short sentences without a full stop; none: all is well. It is shown wherever
  // the provider is. Cheap; may be called from anywhere on the loop.
  std::function<void(std::vector<std::string>)> report_notices = [](const std::vector<std::string>&) {};
  // Runs programs on this host. Null where none may be run.
  process::Runner* runner = nullptr;
};

// The addresses of machines that exist only in the memory of a simulated cloud, as the Python implementation
// has them in its records. Nothing can be reached at them.
inline constexpr std::string_view kSimulatedAddress = "fake";
inline constexpr std::string_view kSimulatedIpv6 = "fake_v6";

// Whether the machine with this address exists only there.
inline bool IsSimulated(std::string_view address) {
  return address == kSimulatedAddress || address == kSimulatedIpv6;
}

// For commands that check a machine from outside: those of `validate` (builder.md 10.8) and `recheck`
// (drivers.md 5.18).

// The port at which the node is reached; 22 if its record names none that can be.
int ConnectionPort(const Node& node);

// `own` and what such a command finds in its environment: NODEPOOL_PROVIDER, NODEPOOL_NODE, NODEPOOL_HOST,
// NODEPOOL_PORT, NODEPOOL_USER and NODEPOOL_HOST_KEYS, a line for each key.
process::Environment MachineEnvironment(process::Environment own, const NodeId& id, const Node& node);

// ": no route to host": what a program printed last, which is likely to say why it failed; empty: nothing.
std::string LastSaid(std::string_view output);

}  // namespace nodepool::driver
