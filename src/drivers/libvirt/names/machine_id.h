#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nodepool::drivers::libvirt {

// A machine of the provider: its host's name and the domain's UUID, which the driver chooses. As external id
// the text "<host>/<UUID>".
struct MachineId {
  std::string host;
  std::string uuid;  // 36 characters, lower case

  std::string ToText() const { return host + "/" + uuid; }
  // What names of its domain and volumes have of the UUID.
  std::string digits() const { return uuid.substr(0, 8); }
  bool operator==(const MachineId&) const = default;
};

// nullopt: the text is not an external id of this driver.
std::optional<MachineId> ParseMachineId(std::string_view text);

// The address of a network interface of the machine, counted from 0 (the one by which it is reached), made of
// the UUID: another one for each machine, so that the lease of a former machine is never taken for this
// one's.
std::string MacAddressOf(const MachineId& id, std::size_t interface = 0);

}  // namespace nodepool::drivers::libvirt
