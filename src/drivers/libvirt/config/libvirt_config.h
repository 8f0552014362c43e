#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "driver/cloud/cloud_image.h"
#include "driver/provider_config.h"
#include "drivers/libvirt/config/host_config.h"

namespace nodepool::drivers::libvirt {

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
