#pragma once

#include <boost/asio/ip/network_v4.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/section.h"

namespace nodepool::drivers::libvirt {

// A storage pool of a host.
struct StoragePool {
  std::string name;
  // Where the pool is made if the host has none of the name; none: it has to exist.
  std::optional<std::string> path;
};

// Where a machine's network interface is plugged in.
struct MachineNetwork {
  enum class Kind {
    kNamed,   // a libvirt network, whose DHCP server knows the addresses
    kBridge,  // a bridge of the host; addresses come from elsewhere
    kUser,    // QEMU's own network: machines are reached at ports of their host
  };
  Kind kind = Kind::kNamed;
  std::string name;  // of the network or the bridge

  bool is_user() const { return kind == Kind::kUser; }
  bool operator==(const MachineNetwork&) const = default;
};

// A network that is made if the host has none of the name.
struct NewNetwork {
  std::string name;
  boost::asio::ip::network_v4 subnet;  // its base address; at least four machines fit
  bool is_isolated = false;            // machines do not reach each other
};

// `storage-pool`: a name, or a mapping. Error(kInvalid) names line and column.
StoragePool ReadStoragePool(const config::Section& section, const StoragePool& otherwise);

// `network`: the name of one, or a mapping; none where it is not set. Error(kInvalid) names line and column.
std::optional<MachineNetwork> ReadNetwork(const config::Section& section);

// The names in `network` after its first, where it is a list.
std::vector<std::string> ReadMoreNetworks(const config::Section& section);

// The network that `network` says how to make; none where it says nothing of it. Error(kInvalid) names line
// and column.
std::optional<NewNetwork> ReadNewNetwork(const config::Section& section);

}  // namespace nodepool::drivers::libvirt
