#include "drivers/libvirt/config/libvirt_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/this_host.h"
#include "driver/cloud/own_types.h"
#include "driver/cloud/section.h"
#include "drivers/libvirt/config/host_config.h"
#include "drivers/libvirt/config/libvirt_settings.h"
#include "drivers/libvirt/names.h"

namespace nodepool::drivers::libvirt {

namespace cloud = driver::cloud;
namespace {

void CheckHostName(const Section& section, std::string_view key, const std::string& name,
                   const LibvirtConfig& provider) {
  if (std::ranges::find(provider.hosts, name, &HostConfig::name) != provider.hosts.end()) return;
  throw section.Fail(
      key, fmt::format("'{}' is not one of the hosts of provider {}", Excerpt(name), provider.name));
}

// --- Images --------------------------------------------------------------------

void TakeKernel(const Section& section, LibvirtCloudImage& image) {
  if (!image.direct.kernel.empty()) {
    image.kernel = image.direct;
    return;
  }
  if (!image.direct.initrd.empty()) throw section.Fail("initrd", "needs kernel beside it");
  if (!image.direct.arguments.empty()) throw section.Fail("kernel-args", "needs kernel beside it");
}

bool IsChecksum(const std::string& hex, std::size_t bits) {
  return hex.size() == bits / 4 && hex.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::optional<ImageOrigin> OriginOf(const Section& section, const LibvirtCloudImage& image) {
  if (!image.url) return std::nullopt;
  if (image.volume || image.path) throw section.Fail("url", "cannot be set beside volume or path");
  if (!image.checksum) throw section.Fail("url", "needs checksum beside it");
  if (!image.url->starts_with("https://") && !image.url->starts_with("http://")) {
    throw section.Fail("url", "expected one that begins with https:// or http://");
  }
  std::size_t colon = image.checksum->find(':');
  std::string algorithm = image.checksum->substr(0, colon);
  std::string hex = colon == std::string::npos ? "" : image.checksum->substr(colon + 1);
  bool is_known =
      (algorithm == "sha256" && IsChecksum(hex, 256)) || (algorithm == "sha512" && IsChecksum(hex, 512));
  if (!is_known) throw section.Fail("checksum", "expected sha256: or sha512: and its digits, in lower case");
  return ImageOrigin{*image.url, std::move(algorithm), std::move(hex)};
}

void CompleteImage(const Section& section, const LibvirtConfig& provider, LibvirtCloudImage& image) {
  image.external_name = image.volume.value_or(image.name);
  if (image.path && image.volume) throw section.Fail("path", "cannot be set beside volume");
  if (image.path && !image.format) {
    throw section.Fail("path", "needs format: a file's format is never guessed from its contents");
  }
  image.origin = OriginOf(section, image);
  if (image.origin) {
    image.format = image.format.value_or("qcow2");
    image.external_name = NameOf(FetchedVolume{provider.name.value, image.origin->checksum, *image.format});
  }
  TakeKernel(section, image);
}

// --- Pools and labels ------------------------------------------------------------

// Only the size of a volume that exists is known before a machine is made.
void CheckDisk(const Section& section, const LibvirtConfig& provider, const LibvirtLabel& label) {
  bool is_known = label.cloud_image && !provider.cloud_images.at(*label.cloud_image).path;
  if (label.disk || is_known) return;
  throw section.Fail(
      "disk", fmt::format("label {} needs disk: {}", label.name,
                          label.diskimage ? "it boots a diskimage" : "its image is a file, not a volume"));
}

// Saved memory goes on at the same port, which one machine at a time can have, and one interface gets a new
// MAC.
void CheckWarmStart(const Section& section, const LibvirtConfig& provider, const LibvirtLabel& label) {
  if (!label.is_started_warm) return;
  bool is_user = label.network ? label.network->is_user()
                               : std::ranges::any_of(provider.hosts, [](const HostConfig& host) {
                                   return host.network.is_user();
                                 });
  if (is_user)
    throw section.Fail("warm-start", "needs a network in which machines have addresses of their own");
  if (!label.more_networks.empty()) throw section.Fail("warm-start", "is for machines with one network");
  if (label.firmware && *label.firmware != Firmware::kBios) {
    throw section.Fail("warm-start",
                       "is for machines with firmware: bios; others have variables on the disk");
  }
}

std::shared_ptr<LibvirtLabel> ReadOffer(const Section& section, const LibvirtPool& pool,
                                        const config::Config& config, LibvirtConfig& provider) {
  auto label = cloud::ReadLabel(section, LibvirtLabelSettings(), pool, provider.cloud_images, config,
                                provider, pool.label_defaults);
  CheckDisk(section, provider, *label);
  if (label->seeds.empty() && provider.has_own_host_keys) {
    throw section.Fail("seed", "cannot be none: the seed carries the host key (host-keys: inject)");
  }
  if (label->cloud_image) label->kernel = provider.cloud_images.at(*label->cloud_image).kernel;
  if (label->host) CheckHostName(section, "host", *label->host, provider);
  CheckWarmStart(section, provider, *label);
  return label;
}

std::shared_ptr<const LibvirtPool> ReadOnePool(const Section& section, const config::Config& config,
                                               LibvirtConfig& provider) {
  LibvirtPool defaults;
  defaults.label_defaults.authorized_keys = provider.authorized_keys;
  std::shared_ptr<LibvirtPool> pool = ReadPool(section, LibvirtPoolSettings(), provider, defaults);
  for (const std::string& host : pool->hosts) CheckHostName(section, "hosts", host, provider);
  for (const Section& entry : section.Sections("labels"))
    pool->Offer(ReadOffer(entry, *pool, config, provider));
  return pool;
}

// --- Keys ----------------------------------------------------------------------

bool HasSeeds(const LibvirtConfig& provider) {
  return cloud::AnyLabel<LibvirtLabel>(provider,
                                       [](const LibvirtLabel& label) { return !label.seeds.empty(); });
}

// By default there is a key where machines would have none at all. `key` is true, false, or a path.
std::optional<std::string> KeyPath(const config::Config& config, const LibvirtConfig& provider) {
  std::string path =
      fmt::format("{}/libvirt/{}", config.zookeeper.embedded.state_dir, Escaped(provider.name.value));
  bool is_wanted = provider.authorized_keys.empty() && HasSeeds(provider);
  if (!provider.key) return is_wanted ? std::optional(path) : std::nullopt;
  if (Lower(*provider.key) == "false") return std::nullopt;
  return Lower(*provider.key) == "true" ? path : *provider.key;
}

// --- What machines reach ---------------------------------------------------------

// QEMU's own network ends in the sockets of the host's processes, so its machines reach the loopback
// interface.
bool ReachesThisHost(const LibvirtConfig& provider) {
  return std::ranges::any_of(provider.hosts, [&provider](const HostConfig& host) {
    auto is_user = [&host](const LibvirtLabel& label) {
      return (label.network ? *label.network : host.network).is_user();
    };
    return IsThisHost(AddressOf(host.uri)) && cloud::AnyLabel<LibvirtLabel>(provider, is_user);
  });
}

}  // namespace

std::shared_ptr<const LibvirtConfig> LoadLibvirtConfig(const config::ProviderSection& section,
                                                       config::Config& config) {
  auto result = std::make_shared<LibvirtConfig>();
  Section provider = ReadProvider(section, LibvirtSettings(), *result);
  if (provider.Has("boot-timeout")) result->slow_boot_timeout = result->boot_timeout;
  result->hosts = ReadHosts(provider, result->uri);
  cloud::ReadDiskImages(provider, cloud::DiskImageSettings(), config, *result);
  result->cloud_images = cloud::ReadCloudImages(
      provider, LibvirtCloudImageSettings(),
      [&result](const Section& entry, LibvirtCloudImage& image) { CompleteImage(entry, *result, image); });
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<const LibvirtPool> pool = ReadOnePool(entry, config, *result);
    result->pools[pool->name] = pool;
  }
  result->key = KeyPath(config, *result);
  result->reaches_this_host = ReachesThisHost(*result);
  return result;
}

}  // namespace nodepool::drivers::libvirt
