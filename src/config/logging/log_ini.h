#pragma once

#include "config/logging/ini_reader.h"
#include "config/yaml/value.h"

namespace nodepool::config {

// The mapping that says the same as a logging file in INI: arguments of handlers get the
// names that their class gives them. Throws Error(kInvalid) that begins with the place.
Value LogDictionary(const Ini& ini);

}  // namespace nodepool::config
