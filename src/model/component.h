#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/foreign.h"
#include "model/resources.h"

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

  bool operator==(const ProviderReport&) const = default;
};

// A launcher's web server, on its host.
struct WebServer {
  std::int64_t port = 0;
  bool has_tls = false;

  bool operator==(const WebServer&) const = default;
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
  // Launchers only, and not those of the Python implementation:
  std::map<ProviderName, ProviderReport> providers;
  std::optional<WebServer> web;
  // Pools only:
  LauncherId id;
  std::optional<PoolName> name;  // missing in records of old versions
  ProviderName provider_name;
  std::vector<LabelName> supported_labels;
  std::int64_t priority = 100;  // lower = preferred
  bool is_paused = false;
  Foreign foreign;

  bool operator==(const Component&) const = default;
};

Expected<Component> ParseComponent(ComponentKind kind, std::string_view json);
std::string ToJson(const Component& component);

}  // namespace nodepool
