#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/ids.h"
#include "model/breaker.h"

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

}  // namespace nodepool::driver
