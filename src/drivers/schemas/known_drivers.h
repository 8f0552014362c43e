#pragma once

#include <string_view>
#include <vector>

#include "config/schema/schema.h"

namespace nodepool::drivers {

// What the sections of drivers in the field may contain that are not part of this program, so that
// a configuration written for other installations can be validated (D-54). Where not every key of a
// driver is known, the schema takes any other (config::IsFullyKnown). Null: there is no such driver.
const config::Schema* KnownDriverSchema(std::string_view driver);

// In alphabetical order.
std::vector<std::string_view> KnownDriverNames();

}  // namespace nodepool::drivers
