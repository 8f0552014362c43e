#pragma once

#include <boost/asio/ip/network_v4.hpp>
#include <optional>
#include <string>
#include <string_view>
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

// A part of what a host has: an amount, or a percentage of the whole, which may exceed 100.
struct Share {
  double value = 0;
  bool is_percentage = false;

  double Of(double whole) const { return is_percentage ? whole * value / 100 : value; }
};

// "8" or "150%"; nullopt: anything else.
std::optional<Share> ParseShare(std::string_view text);

enum class Accelerator { kAuto, kKvm, kTcg };

// A host of a provider, with the provider's settings where it has none of its own.
struct HostConfig {
  std::string name;
  std::string uri;  // may contain a password
  StoragePool storage_pool;
  std::string address;  // where its forwarded ports are reached
  MachineNetwork network;
  std::optional<NewNetwork> new_network;  // `network` where it may have to be made
  Accelerator accelerator = Accelerator::kAuto;
  Share cores{100, true};
  std::optional<Share> memory;  // MiB; none: all but a reserve for the host itself
  Share disk{90, true};         // GiB
  std::optional<int> instances;
  int min_free_disk = 5;  // GiB
  bool is_paused = false;
};

// The provider's `hosts`, or the one host at its `uri`. Error(kInvalid) names line and column.
std::vector<HostConfig> ReadHosts(const config::Section& provider, const std::string& uri);

// The host that a libvirt URI names, an address or a name; 127.0.0.1 where it names none.
std::string AddressOf(std::string_view uri);

// Whether the URI is that of a local user's own libvirt, which has no rights of the system.
bool IsSession(std::string_view uri);

// Error(kInvalid): the URI is that of a user's own libvirt and the user is root, who has none beside the
// system's.
void CheckRights(std::string_view uri, bool is_root);

// Where the user who runs this program has data: $XDG_DATA_HOME, else ~/.local/share.
std::string UserDataFolder();

}  // namespace nodepool::drivers::libvirt
