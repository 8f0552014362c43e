#pragma once

#include <optional>
#include <string_view>

#include "base/ids.h"

namespace nodepool::config {

// What is wrong with the name of an image that is to name files, znodes and arguments of commands; nullopt
// for a good one. The Python implementation takes every name, so the file is loaded all the same, and no
// image of such a name is built.
std::optional<std::string_view> ImageNameFault(const ImageName& name);

}  // namespace nodepool::config
