#pragma once

#include <string>
#include <string_view>

namespace nodepool::builder {

// The line of a failed build's log that is most likely to say why: the last that speaks of an error, else the
// last of all; without the time stamp of diskimage-builder. Traces of shells ("+ cmd") do not count. Empty if
// nothing is left.
std::string ReasonInLog(std::string_view log);

}  // namespace nodepool::builder
