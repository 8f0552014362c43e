#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/node.h"
#include "model/raw_json.h"

namespace nodepool {

enum class ComponentKind { kLauncher, kBuilder, kPool };
enum class ComponentState { kInitializing, kRunning, kPaused, kStopped };

std::string_view ToString(ComponentKind kind);  // also the directory's name
std::string_view ToString(ComponentState state);

enum class ProviderState {
  kStarting,
  kUp,
  kFailing,   // it cannot be started or used; tried again
  kDraining,  // not configured any more: it finishes its work
};

std::string_view ToString(ProviderState state);
std::vector<std::string_view> ProviderStateWords();

// A launcher's announcement of one of its providers (D-30).
struct ProviderReport {
  ProviderState state = ProviderState::kStarting;
  WallTime since{};
  std::string fault;  // why it is failing
  Resources limit;    // what the cloud leaves for Nodepool; a missing resource is unlimited or not known
  // What operators should know of although the provider can be used, such as hosts that do not answer: short
  // sentences without a full stop.
  std::vector<std::string> notices;

  bool operator==(const ProviderReport&) const = default;
};

// A launcher's web server, on its host.
struct WebServer {
  std::int64_t port = 0;
  bool has_tls = false;

  bool operator==(const WebServer&) const = default;
};

// Fewer free nodes of a label than its min-ready, and none on their way, since a launcher's last attempts
// failed or the label cannot be launched.
struct ShortStock {
  WallTime since{};
  std::string why;

  bool operator==(const ShortStock&) const = default;
};

// A configuration that a daemon does not use because it has a fault; the previous one is in force.
struct RejectedConfiguration {
  WallTime since{};   // of the first fault since the last good one
  std::string error;  // with file, line and column

  bool operator==(const RejectedConfiguration&) const = default;
};

// A process, or a pool of one, as it announces itself (coordination.md 4.8).
struct Component {
  ComponentKind kind = ComponentKind::kLauncher;
  std::string hostname;
  std::int64_t model_api = 0;
  ComponentState state = ComponentState::kStopped;
  std::optional<std::string> version;
  // Of launchers and pools: registers slots of static hosts only under their lock (D-85).
  bool locks_slots = false;
  // Not of pools, and not of the Python implementation:
  std::optional<RejectedConfiguration> configuration_rejected;
  // Launchers only, and not those of the Python implementation:
  std::map<ProviderName, ProviderReport> providers;
  std::optional<WebServer> web;
  std::map<LabelName, ShortStock> shortages;
  // Pools only:
  LauncherId id;
  std::optional<PoolName> name;  // missing in records of old versions
  ProviderName provider_name;
  std::vector<LabelName> supported_labels;
  std::map<LabelName, std::string> label_faults;  // why labels cannot be launched although the provider is up
  std::int64_t priority = 100;                    // lower = preferred
  bool is_paused = false;
  Foreign foreign;

  bool operator==(const Component&) const = default;
};

Expected<Component> ParseComponent(ComponentKind kind, std::string_view json);
std::string ToJson(const Component& component);

}  // namespace nodepool
