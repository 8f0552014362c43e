#pragma once

#include <map>
#include <string>

namespace nodepool {

// Amounts by resource name: "cores", "instances", "ram" (MiB), "volumes",
// "volume-gb" and whatever a driver adds. The names are wire format: they stand in
// a node's `resources`. An absent resource is 0.
using Resources = std::map<std::string, double>;

}  // namespace nodepool
