#pragma once

#include <string_view>
#include <vector>

#include "config/schema/schema.h"

namespace nodepool::drivers {

// A driver with a complete schema (drivers.md 11).
config::Schema TestSchema();

// The schemas of known drivers that are not part of this program, so that a configuration written for other
// installations can be validated (D-54). If not every key of a driver is known, its schema accepts any other
// key (config::IsFullyKnown). Null: the driver is unknown.
const config::Schema* KnownDriverSchema(std::string_view driver);

// In alphabetical order.
std::vector<std::string_view> KnownDriverNames();

}  // namespace nodepool::drivers
