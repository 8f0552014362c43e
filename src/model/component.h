#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "model/foreign.h"

namespace nodepool {

enum class ComponentKind { kLauncher, kBuilder, kPool };
enum class ComponentState { kInitializing, kRunning, kPaused, kStopped };

std::string_view ToString(ComponentKind kind);  // also the directory's name
std::string_view ToString(ComponentState state);

// A process, or a pool of one, as it announces itself (coordination.md 4.8).
struct Component {
  ComponentKind kind = ComponentKind::kLauncher;
  std::string hostname;
  std::int64_t model_api = 0;
  ComponentState state = ComponentState::kStopped;
  std::optional<std::string> version;
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
