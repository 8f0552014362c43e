#pragma once

#include "config/logging/ini_reader.h"
#include "config/yaml/value.h"

namespace nodepool::config {

// Converts a logging file in INI to the equivalent mapping: arguments of handlers get the names
// that their class gives them. Throws Error(kInvalid) that begins with the place.
Value LogDictionary(const Ini& ini);

}  // namespace nodepool::config
