#include "drivers/libvirt/config/libvirt_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/this_host.h"
#include "drivers/libvirt/config/host_uri.h"
#include "drivers/libvirt/config/words.h"
#include "drivers/libvirt/names/escaping.h"
#include "drivers/libvirt/names/volume_name.h"
#include "drivers/libvirt_schema.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::libvirt {

namespace cloud = driver::cloud;
using config::Section;

namespace {

constexpr const char* kDefaultFilter = "clean-traffic";

void CheckFormat(const Section& section, std::string_view key, const std::string& format) {
  if (format != "qcow2" && format != "raw") throw section.Fail(key, "expected qcow2 or raw");
}

// A count that is at least 1.
int ReadSize(const Section& section, std::string_view key) {
  int size = ReadCount(section, key);
  if (size < 1) throw section.Fail(key, "expected a positive number");
  return size;
}

void CheckHostName(const Section& section, std::string_view key, const std::string& name,
                   const LibvirtConfig& provider) {
  if (std::ranges::find(provider.hosts, name, &HostConfig::name) != provider.hosts.end()) return;
  throw section.Fail(
      key, fmt::format("'{}' is not one of the hosts of provider {}", Excerpt(name), provider.name));
}

// --- Images --------------------------------------------------------------------

std::optional<DirectKernel> ReadKernel(const Section& section) {
  if (section.Has("kernel")) {
    return DirectKernel{section.Text("kernel"), section.OptionalText("initrd").value_or(""),
                        section.OptionalText("kernel-args").value_or("")};
  }
  for (const char* key : {"initrd", "kernel-args"}) {
    if (section.Has(key)) throw section.Fail(key, "needs kernel beside it");
  }
  return std::nullopt;
}

bool IsChecksum(const std::string& hex, std::size_t bits) {
  return hex.size() == bits / 4 && hex.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::optional<ImageOrigin> ReadOrigin(const Section& section) {
  if (!section.Has("url")) return std::nullopt;
  if (section.Has("volume") || section.Has("path")) {
    throw section.Fail("url", "cannot be set beside volume or path");
  }
  if (!section.Has("checksum")) throw section.Fail("url", "needs checksum beside it");
  std::string url = section.Text("url");
  if (!url.starts_with("https://") && !url.starts_with("http://")) {
    throw section.Fail("url", "expected one that begins with https:// or http://");
  }
  std::string checksum = section.Text("checksum");
  std::size_t colon = checksum.find(':');
  std::string algorithm = checksum.substr(0, colon);
  std::string hex = colon == std::string::npos ? "" : checksum.substr(colon + 1);
  bool is_known =
      (algorithm == "sha256" && IsChecksum(hex, 256)) || (algorithm == "sha512" && IsChecksum(hex, 512));
  if (!is_known) throw section.Fail("checksum", "expected sha256: or sha512: and its digits, in lower case");
  return ImageOrigin{std::move(url), std::move(algorithm), std::move(hex)};
}

LibvirtCloudImage ReadImage(const Section& section, const LibvirtConfig& provider) {
  LibvirtCloudImage image;
  image.name = section.Text("name");
  image.external_name = section.OptionalText("volume").value_or(image.name);
  image.path = section.OptionalText("path");
  image.format = section.OptionalText("format");
  if (image.format) CheckFormat(section, "format", *image.format);
  if (image.path && section.Has("volume")) throw section.Fail("path", "cannot be set beside volume");
  if (image.path && !image.format) {
    throw section.Fail("path", "needs format: a file's format is never guessed from its contents");
  }
  image.origin = ReadOrigin(section);
  if (image.origin) {
    image.format = image.format.value_or("qcow2");
    image.external_name = NameOf(FetchedVolume{provider.name.value, image.origin->checksum, *image.format});
  }
  image.kernel = ReadKernel(section);
  ReadConnectionType(section, image.connection);
  image.connection.username = section.OptionalText("username");
  image.connection.python_path = section.Text("python-path");
  image.connection.shell_type = section.OptionalText("shell-type");
  return image;
}

void ReadImages(const Section& provider, config::Config& config, LibvirtConfig& result) {
  result.manages_images = true;
  result.image_format = provider.Text("image-format");
  CheckFormat(provider, "image-format", result.image_format);
  cloud::ReadUploadSettings(provider, result);
  for (const Section& entry : provider.Sections("diskimages")) {
    auto image = std::make_shared<driver::ProviderDiskImage>();
    cloud::ReadDiskImage(entry, config, result, *image);
    result.diskimages[image->name] = image;
  }
  for (const Section& entry : provider.Sections("cloud-images")) {
    LibvirtCloudImage image = ReadImage(entry, result);
    result.cloud_images[image.name] = std::move(image);
  }
}

std::optional<SameHost> ReadSameHost(const Section& provider) {
  static const Words<std::optional<SameHost>> words = {{"require", SameHost::kRequire},
                                                       {"prefer", SameHost::kPrefer},
                                                       {"no", SameHost::kNo},
                                                       {"false", SameHost::kNo}};
  return ReadWord(provider, "same-host", words, std::optional<SameHost>());
}

// --- Pools and labels ------------------------------------------------------------

std::vector<SeedFormat> ReadSeeds(const Section& section) {
  static const Words<std::vector<SeedFormat>> words = {
      {"nocloud", {SeedFormat::kNoCloud}},
      {"config-drive", {SeedFormat::kConfigDrive}},
      {"both", {SeedFormat::kNoCloud, SeedFormat::kConfigDrive}},
      {"none", {}}};
  return ReadWord(section, "seed", words, {SeedFormat::kNoCloud, SeedFormat::kConfigDrive});
}

std::vector<std::string> ReadKeys(std::initializer_list<const Section*> sections) {
  std::vector<std::string> keys;
  for (const Section* section : sections) {
    for (std::string& key : section->TextList("authorized-keys")) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
    }
  }
  return keys;
}

std::optional<std::string> ReadFilter(const Section& label, const Section& pool) {
  std::optional<std::string> text = label.OptionalText("security-filter");
  if (!text) text = pool.OptionalText("security-filter");
  if (!text || Lower(*text) == "true") return kDefaultFilter;
  if (Lower(*text) == "false") return std::nullopt;
  return text;
}

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
  if (label.firmware != Firmware::kBios) {
    throw section.Fail("warm-start",
                       "is for machines with firmware: bios; others have variables on the disk");
  }
}

std::shared_ptr<LibvirtLabel> ReadOffer(const Section& section, const Section& pool,
                                        const Section& provider_section, const config::Config& config,
                                        LibvirtConfig& provider) {
  static const Words<std::string> buses = {{"virtio", "virtio"}, {"scsi", "scsi"}, {"sata", "sata"}};
  static const Words<Firmware> firmwares = {
      {"bios", Firmware::kBios}, {"uefi", Firmware::kUefi}, {"uefi-secure", Firmware::kUefiSecure}};
  auto label = std::make_shared<LibvirtLabel>();
  cloud::ReadLabel(section, pool, config, cloud::FindIn(provider.cloud_images), provider, *label);
  label->vcpus = ReadSize(section, "vcpus");
  label->memory = ReadSize(section, "memory");
  if (section.Has("disk")) label->disk = ReadSize(section, "disk");
  CheckDisk(section, provider, *label);
  label->machine = section.Text("machine");
  label->cpu = section.OptionalText("cpu");
  label->firmware = ReadWord(section, "firmware", firmwares, Firmware::kBios);
  label->disk_bus = ReadWord(section, "disk-bus", buses, std::string("virtio"));
  label->seeds = ReadSeeds(section);
  if (label->seeds.empty() && provider.has_own_host_keys) {
    throw section.Fail("seed", "cannot be none: the seed carries the host key (host-keys: inject)");
  }
  label->authorized_keys = ReadKeys({&provider_section, &pool, &section});
  label->userdata = section.OptionalText("userdata");
  if (!label->userdata) label->userdata = pool.OptionalText("userdata");
  const Section& of_network = section.Has("network") ? section : pool;
  label->network = ReadNetwork(of_network);
  label->more_networks = ReadMoreNetworks(of_network);
  label->security_filter = ReadFilter(section, pool);
  label->is_started_warm = section.Bool("warm-start");
  label->host = section.OptionalText("host");
  if (label->cloud_image) label->kernel = provider.cloud_images.at(*label->cloud_image).kernel;
  if (label->host) CheckHostName(section, "host", *label->host, provider);
  CheckWarmStart(section, provider, *label);
  return label;
}

std::shared_ptr<const LibvirtPool> ReadOnePool(const Section& section, const Section& provider_section,
                                               const config::Config& config, LibvirtConfig& provider) {
  auto pool = std::make_shared<LibvirtPool>();
  cloud::ReadCloudPool(section, provider_section, *pool);
  pool->hosts = section.TextList("hosts");
  for (const std::string& host : pool->hosts) CheckHostName(section, "hosts", host, provider);
  for (const Section& entry : section.Sections("labels")) {
    pool->Offer(ReadOffer(entry, section, provider_section, config, provider));
  }
  return pool;
}

// --- Keys ----------------------------------------------------------------------

bool HasSeeds(const LibvirtConfig& provider) {
  for (const auto& [pool_name, pool] : provider.pools) {
    for (const auto& [label_name, label] : pool->labels) {
      if (!dynamic_cast<const LibvirtLabel&>(*label).seeds.empty()) return true;
    }
  }
  return false;
}

// By default there is a key where machines would have none at all.
std::optional<std::string> ReadKeyPath(const Section& section, const config::Config& config,
                                       const LibvirtConfig& provider) {
  std::string path =
      fmt::format("{}/libvirt/{}", config.zookeeper.embedded.state_dir, Escaped(provider.name.value));
  std::optional<std::string> text = section.OptionalText("key");
  bool is_wanted = section.TextList("authorized-keys").empty() && HasSeeds(provider);
  if (!text) return is_wanted ? std::optional(path) : std::nullopt;
  if (Lower(*text) == "false") return std::nullopt;
  return Lower(*text) == "true" ? path : *text;
}

// --- What machines reach ---------------------------------------------------------

// QEMU's own network ends in the sockets of the host's processes, so its machines reach the loopback
// interface.
bool ReachesThisHost(const LibvirtConfig& provider) {
  auto is_user = [](const HostConfig& host, const driver::LabelConfig& label) {
    const auto& network = dynamic_cast<const LibvirtLabel&>(label).network;
    return network ? network->is_user() : host.network.is_user();
  };
  for (const HostConfig& host : provider.hosts) {
    if (!IsThisHost(AddressOf(host.uri))) continue;
    for (const auto& [pool_name, pool] : provider.pools) {
      for (const auto& [label_name, label] : pool->labels) {
        if (is_user(host, *label)) return true;
      }
    }
  }
  return false;
}

}  // namespace

std::shared_ptr<const LibvirtConfig> LoadLibvirtConfig(const config::ProviderSection& section,
                                                       config::Config& config) {
  static const Words<Placement> placements = {{"spread", Placement::kSpread}, {"pack", Placement::kPack}};
  Section provider = OpenProvider(section, LibvirtSchema());
  auto result = std::make_shared<LibvirtConfig>();
  ReadProvider(section, provider, *result);
  cloud::ReadLaunchSettings(provider, *result);
  if (provider.Has("boot-timeout")) result->slow_boot_timeout = result->boot_timeout;
  result->hosts = ReadHosts(provider);
  result->same_host = ReadSameHost(provider);
  result->placement = ReadWord(provider, "placement", placements, Placement::kSpread);
  result->has_own_host_keys = ReadWord(provider, "host-keys", {{"scan", false}, {"inject", true}}, false);
  result->call_timeout = provider.Seconds("call-timeout");
  ReadImages(provider, config, *result);
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<const LibvirtPool> pool = ReadOnePool(entry, provider, config, *result);
    result->pools[pool->name] = pool;
  }
  result->key = ReadKeyPath(provider, config, *result);
  result->reaches_this_host = ReachesThisHost(*result);
  return result;
}

}  // namespace nodepool::drivers::libvirt
