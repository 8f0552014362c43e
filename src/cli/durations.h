#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace nodepool::cli {

// "90", "90s", "5m", "1.5h" or "2d": a number with an optional unit, by default seconds. Error(kInvalid) for
// negative, infinite and excessively long ones.
Expected<Duration> ParseDuration(std::string_view text);

}  // namespace nodepool::cli
