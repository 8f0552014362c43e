#pragma once

#include <boost/asio/ip/network_v4.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/schema/section.h"
#include "driver/provider_config.h"
#include "driver/provider_section.h"

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

// Files of a host with which a machine is started in place of its disk's boot loader.
struct DirectKernel {
  std::string kernel;
  std::string initrd;     // "": none
  std::string arguments;  // the kernel's command line
};

// What a machine starts with, before the boot loader of its disk (driver-libvirt.md 7.3).
enum class Firmware { kBios, kUefi, kUefiSecure };

enum class Placement { kSpread, kPack };
// Whether the nodes of one request are made on one host.
enum class SameHost { kRequire, kPrefer, kNo };
enum class SeedFormat { kNoCloud, kConfigDrive };

// What is fetched, and how that is verified.
struct ImageOrigin {
  std::string url;
  std::string algorithm;  // "sha256" or "sha512"
  std::string checksum;   // hex, lower case
};

// An entry of `cloud-images`: a volume of the host's storage pool (external_name), or a file of the host.
struct LibvirtCloudImage : driver::cloud::CloudImage {
  // As the section says.
  std::optional<std::string> volume;
  std::optional<std::string> url;
  std::optional<std::string> checksum;
  DirectKernel direct;

  std::optional<ImageOrigin> origin;  // of a volume that the driver makes
  std::optional<std::string> path;    // the file; none: a volume
  std::optional<std::string> format;  // qcow2 or raw; none: as the volume says
  std::optional<DirectKernel> kernel;
};

struct LibvirtLabel : driver::LabelConfig {
  int vcpus = 1;
  int memory = 1024;                   // MiB
  std::optional<int> disk;             // GiB; none: the image's virtual size
  std::optional<std::string> machine;  // none: what the host's architecture usually has
  std::optional<std::string> cpu;
  std::optional<Firmware> firmware;  // none: what the host's architecture usually has
  std::string disk_bus = "virtio";
  std::vector<SeedFormat> seeds = {SeedFormat::kNoCloud, SeedFormat::kConfigDrive};  // a disk each
  std::optional<std::string> userdata;                                               // may contain secrets
  std::vector<std::string> authorized_keys;  // of provider, pool and label, each once
  std::optional<MachineNetwork> network;     // none: the host's
  std::vector<std::string> more_networks;    // of the host's libvirt, an interface each
  std::optional<std::string> security_filter;
  std::optional<std::string> host;  // none: any of the pool's
  std::optional<DirectKernel> kernel;
  bool is_started_warm = false;  // from the saved memory of a booted machine
};

// libvirt's filter against machines that pretend to be others.
inline constexpr const char* kDefaultFilter = "clean-traffic";

struct LibvirtPool : driver::PoolConfig {
  LibvirtPool() { label_defaults.security_filter = kDefaultFilter; }

  std::vector<std::string> hosts;  // empty: all
  LibvirtLabel label_defaults;     // network, filter, keys and user data
};

// A provider of driver `libvirt` (driver-libvirt.md 2). Its pools are LibvirtPool, their labels LibvirtLabel.
struct LibvirtConfig : driver::ProviderConfig {
  LibvirtConfig() {
    launch_timeout = std::chrono::seconds(600);
    manages_images = true;
    image_format = "qcow2";
  }

  std::string uri = "qemu:///system";        // of the only host, where `hosts` does not name them
  std::vector<std::string> authorized_keys;  // for every machine
  std::vector<HostConfig> hosts;             // at least one, names differ
  Placement placement = Placement::kSpread;
  std::optional<SameHost> same_host;  // none: as the network of the machines needs it
  // boot-timeout of machines without KVM.
  Duration slow_boot_timeout = std::chrono::seconds(300);
  Duration call_timeout = std::chrono::seconds(30);
  std::optional<std::string> key;  // path of the private key whose public half every machine gets
  bool has_own_host_keys = false;  // machines get host keys that the driver makes
  std::map<std::string, LibvirtCloudImage> cloud_images;
};

// Reads the section and adds the provider's image format to the disk images that it lists; contacts no host.
// Error(kInvalid) names line and column.
std::shared_ptr<const LibvirtConfig> LoadLibvirtConfig(const config::ProviderSection& section,
                                                       config::Config& config);

}  // namespace nodepool::drivers::libvirt
