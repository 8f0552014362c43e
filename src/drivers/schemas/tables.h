#pragma once

#include "config/schema.h"

namespace nodepool::drivers {

// Drivers that are known completely (drivers.md 8.1, 9, 11).
config::Schema MetastaticSchema();
config::Schema ExampleSchema();
config::Schema TestSchema();

// Drivers of which the keys that matter to their users' files are known.
config::Schema AwsSchema();
config::Schema GceSchema();
config::Schema KubernetesSchema();

}  // namespace nodepool::drivers
