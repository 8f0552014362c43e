#include "drivers/static/unlocked_peer.h"

#include <algorithm>

namespace nodepool::drivers {

bool HasUnlockedPeer(const store::ComponentRegistry* components, const ProviderName& provider) {
  if (components == nullptr) return false;
  return std::ranges::any_of(components->all(), [&](const auto& entry) {
    const Component& component = entry.second;
    if (component.locks_slots) return false;
    if (component.kind == ComponentKind::kPool) return component.provider_name == provider;
    return component.kind == ComponentKind::kLauncher && component.state != ComponentState::kRunning;
  });
}

}  // namespace nodepool::drivers
