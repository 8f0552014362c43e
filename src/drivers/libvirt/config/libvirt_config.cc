#include "drivers/libvirt/config/libvirt_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/this_host.h"
#include "driver/cloud/adapter.h"
#include "driver/provider_section.h"
#include "drivers/libvirt/config/libvirt_settings.h"
#include "drivers/libvirt/names.h"

namespace nodepool::drivers::libvirt {

namespace cloud = driver::cloud;

namespace {

constexpr const char* kDefaultPool = "nodepool";

// What a host has that says nothing else. The session of a user without rights has nothing of the system's.
HostConfig UsualHost(const std::string& uri) {
  HostConfig host;
  host.uri = uri;
  host.address = AddressOf(uri);
  if (IsSession(uri)) {
    host.storage_pool = {kDefaultPool, UserDataFolder() + "/nodepool/libvirt"};
    host.network = {MachineNetwork::Kind::kUser, ""};
  } else {
    host.storage_pool = {kDefaultPool, "/var/lib/libvirt/images/nodepool"};
    host.network = {MachineNetwork::Kind::kNamed, "default"};
  }
  return host;
}

HostConfig ReadHost(const Section& section, const Section& provider) {
  HostConfig host = UsualHost(section.Text("uri"));
  HostDefaults().Read(provider, host);
  HostSettings().Read(section, host);
  auto is_allowed = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (host.name.empty() || !std::ranges::all_of(host.name, is_allowed)) {
    throw section.Fail("name", "a host's name consists of letters, digits, - and _");
  }
  return host;
}

}  // namespace

std::vector<HostConfig> ReadHosts(const Section& provider, const std::string& uri) {
  HostConfig only = UsualHost(uri);
  only.name = "local";
  HostDefaults().Read(provider, only);
  if (!provider.Has("hosts")) return {only};
  if (provider.Has("uri")) throw provider.Fail("uri", "cannot be set beside hosts: each host has its own");
  std::vector<HostConfig> hosts;
  std::set<std::string> names;
  for (const Section& entry : provider.Sections("hosts")) {
    hosts.push_back(ReadHost(entry, provider));
    if (!names.insert(hosts.back().name).second) throw entry.Fail("name", "two hosts have this name");
  }
  if (hosts.empty()) throw provider.Fail("hosts", "expected at least one host");
  return hosts;
}

namespace {

// What is between "scheme://" and the path.
std::string_view AuthorityOf(std::string_view uri) {
  std::size_t begin = uri.find("://");
  if (begin == std::string_view::npos) return "";
  std::string_view rest = uri.substr(begin + 3);
  return rest.substr(0, rest.find_first_of("/?"));
}

std::string_view PathOf(std::string_view uri) {
  std::string_view authority = AuthorityOf(uri);
  std::size_t begin = uri.find("://");
  if (begin == std::string_view::npos) return "";
  std::string_view rest = uri.substr(begin + 3 + authority.size());
  return rest.substr(0, rest.find('?'));
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string AddressOf(std::string_view uri) {
  std::string_view host = AuthorityOf(uri);
  std::size_t user = host.rfind('@');
  if (user != std::string_view::npos) host.remove_prefix(user + 1);
  if (host.starts_with('[')) return std::string(host.substr(1, host.find(']') - 1));
  host = host.substr(0, host.find(':'));
  return host.empty() ? "127.0.0.1" : std::string(host);
}

bool IsSession(std::string_view uri) { return AuthorityOf(uri).empty() && PathOf(uri) == "/session"; }

void CheckRights(std::string_view uri, bool is_root) {
  if (!is_root || !IsSession(uri)) return;
  throw Error(Verdict::kInvalid,
              "qemu:///session is the libvirt of an ordinary user, and Nodepool runs as root: set uri to "
              "qemu:///system, or run Nodepool as that user");
}

std::string UserDataFolder() {
  std::string folder = Environment("XDG_DATA_HOME");
  return folder.empty() ? Environment("HOME") + "/.local/share" : folder;
}

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
