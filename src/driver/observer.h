#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"

namespace nodepool::driver {

// How one attempt to launch a node ended, as metrics name it (launcher.md 27.2).
struct LaunchOutcome {
  ProviderName provider;
  NodeId node;
  std::optional<std::string> az;
  std::optional<std::string> requestor;
  // "ready", "error.quota", "error.keyscan" ...: the last part of the metric's name.
  std::string result;
  Duration duration{};  // since the first attempt for this node began
};

// One call of a cloud's API that ended.
struct ApiCall {
  ProviderName provider;
  std::string driver;
  std::string service;        // "compute"
  std::string method;         // "GET"
  std::string name;           // what was asked for, without ids: "servers_detail"
  std::optional<int> status;  // of the answer; none: there was no answer
  Duration duration{};
};

// Told what providers do, for metrics. Called on the loop; must not throw.
class ProviderObserver {
 public:
  virtual ~ProviderObserver() = default;
  virtual void LaunchAttemptEnded(const LaunchOutcome& /*outcome*/) {}
  // One look deleted so many leaked resources of a kind; `kind` is plural, e.g. "instances"
  // (launcher.md 27.6).
  virtual void LeakedResourcesDeleted(const ProviderName& /*provider*/, const std::string& /*kind*/,
                                      int /*count*/) {}
  virtual void ApiCallEnded(const ApiCall& /*call*/) {}
};

}  // namespace nodepool::driver
