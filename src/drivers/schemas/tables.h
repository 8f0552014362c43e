#pragma once

#include "config/schema/schema.h"

namespace nodepool::drivers {

// A driver with a complete schema (drivers.md 11).
config::Schema TestSchema();

}  // namespace nodepool::drivers
