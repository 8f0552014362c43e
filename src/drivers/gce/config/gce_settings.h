#pragma once

#include "drivers/gce/config/gce_config.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::gce {

// A provider's section of driver `gce` (driver-gce.md 2); strict validation agrees with the Python validator
// about the keys that this one knows. The lists of a provider and of a pool are read by LoadGceConfig.
const Bindings<GceConfig>& GceSettings();
const Bindings<GceCloudImage>& GceCloudImageSettings();
const Bindings<GceDiskImage>& GceDiskImageSettings();
const Bindings<GcePool>& GcePoolSettings();
const Bindings<GceLabel>& GceLabelSettings();

const config::Schema& GceSchema();

}  // namespace nodepool::drivers::gce
