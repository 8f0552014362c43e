#pragma once

#include "config/schema/schema.h"

namespace nodepool::drivers {

// A driver with a complete schema (drivers.md 11).
config::Schema TestSchema();

// Drivers of which only the keys used in practice are known.
config::Schema GceSchema();

}  // namespace nodepool::drivers
