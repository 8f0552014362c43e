#pragma once

#include "config/ini_reader.h"
#include "config/value.h"

namespace nodepool::config {

// The mapping that says the same as a logging file in INI: arguments of handlers get the
// names that their class gives them. Throws Error(kInvalid) that begins with the place.
Value LogDictionary(const Ini& ini);

}  // namespace nodepool::config
