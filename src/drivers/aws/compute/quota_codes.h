#pragma once

#include <string>
#include <string_view>

namespace nodepool::drivers::aws {

// The code of the quota under which the virtual CPUs of an instance type count (driver-aws.md 13.1): families
// share one, and spot instances have quotas of their own. Empty: none is known.
std::string_view CodeOfType(std::string_view type, bool is_spot);

// The code of the quota of dedicated hosts for an instance type. Empty: none is known.
std::string_view CodeOfHost(std::string_view type);

// The codes of the quotas under which a volume counts: its size in GB, and its operations per second. Empty:
// there is none.
struct VolumeCodes {
  std::string_view storage;
  std::string_view iops;
};
VolumeCodes CodesOfVolume(std::string_view volume_type);

}  // namespace nodepool::drivers::aws
