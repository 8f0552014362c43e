#pragma once

#include "config/schema/schema.h"

namespace nodepool::config {

// The top level of nodepool.yaml (configuration.md 4-8, 16). Entries of `providers`
// are left open here: each driver has its own schema.
const Schema& MainSchema();

// What the daemons read of the secure file (configuration.md 10).
const Schema& SecureSchema();

// A driver's provider section together with the keys common to all drivers
// (configuration.md 9.1), which win over keys of the same name. Any() stays Any().
Schema WithCommonSettings(const Schema& driver_schema);

}  // namespace nodepool::config
