#pragma once

#include "base/ids.h"
#include "store/cache/component_registry.h"

namespace nodepool::drivers {

// Whether somebody may register slots of the provider without their lock (D-85), as launchers of the
// Python implementation do. One that is still starting has not told its providers yet and counts for
// each. False when `components` is null.
bool HasUnlockedPeer(const store::ComponentRegistry* components, const ProviderName& provider);

}  // namespace nodepool::drivers
