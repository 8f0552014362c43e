#pragma once

#include "config/schema/schema.h"

namespace nodepool::drivers {

// A driver that is known completely (drivers.md 11).
config::Schema TestSchema();

// Drivers of which the keys that matter to their users' files are known.
config::Schema AwsSchema();
config::Schema GceSchema();
config::Schema KubernetesSchema();

}  // namespace nodepool::drivers
