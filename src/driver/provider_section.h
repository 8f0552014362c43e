#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "config/config.h"
#include "config/schema/bindings.h"
#include "driver/provider_config.h"

namespace nodepool::driver {

// What the sections of most drivers have in common (configuration.md 9, drivers.md 1.8): settings bound to
// the members of the configuration, to which a driver adds its own with Bindings::With, and functions that
// read a section with them. All functions that read throw Error(kInvalid) with line and column.

// `name`, `max-servers`, `node-attributes`, `priority`.
config::Bindings<PoolConfig> PoolSettings(std::string help_of_name = "Name of the pool.");
// `name` where the validator accepts a pool without one; for PoolSettings().With().
config::Bindings<PoolConfig> OptionalPoolName();
// A limit of a pool, in PoolConfig::limits.
config::Binding<PoolConfig> Limit(config::Setting setting, std::string resource);

// Overlays amounts with those of a mapping of resources to numbers; absent: with none.
void ReadAmounts(const config::Section& section, std::string_view key, Resources& amounts);

// `connection-type`, `connection-port`; the port's default depends on the type: 22, winrm 5986.
config::Bindings<ConnectionSettings> ConnectionTypeSettings();
// How to log in to machines of an image: `username`, `python-path`, `shell-type`, and these two.
config::Bindings<ConnectionSettings> LoginSettings();

// The section as a provider mapping: `schema` is the driver's, without common keys.
config::Section OpenProvider(const config::ProviderSection& section, const config::Schema& schema);

// Reads what all drivers share: name, driver, max-concurrency, priority and breaker; the fingerprint is the
// section itself.
void ReadCommonSettings(const config::ProviderSection& source, const config::Section& provider,
                        ProviderConfig& result);

// Reads these, and the driver's own settings. Returns the section, for what they do not read: its lists.
template <class Config>
config::Section ReadProvider(const config::ProviderSection& source, const config::Bindings<Config>& settings,
                             Config& result) {
  config::Section provider = OpenProvider(source, settings.ToSchema());
  ReadCommonSettings(source, provider, result);
  settings.Read(provider, result);
  return provider;
}

// A pool of the provider with what its section says; what it does not say is as in `defaults`.
template <class Pool>
std::shared_ptr<Pool> ReadPool(const config::Section& section, const config::Bindings<Pool>& settings,
                               const ProviderConfig& provider, const Pool& defaults = {}) {
  auto pool = std::make_shared<Pool>(defaults);
  pool->priority = provider.priority;
  settings.Read(section, *pool);
  return pool;
}

// Throws unless the label that the section names under `key` is one of the top-level labels.
void CheckLabelName(const LabelName& name, const config::Section& section, std::string_view key,
                    const config::Config& config);

// A label of the pool with what its section says, checked; what it does not say is as in `defaults`.
template <class Label>
std::shared_ptr<Label> ReadLabel(const config::Section& section, const config::Bindings<Label>& settings,
                                 const config::Config& config, const Label& defaults = {}) {
  auto label = std::make_shared<Label>(defaults);
  settings.Read(section, *label);
  CheckLabelName(label->name, section, "name", config);
  return label;
}

// A warning about a setting, with file, line and column.
void Warn(config::Config& config, const config::Section& section, std::string_view key,
          std::string_view message);

}  // namespace nodepool::driver

namespace nodepool::driver::cloud {

// An entry of `cloud-images`: an image that exists in the cloud. Drivers derive their own with their options.
struct CloudImage {
  std::string name;
  std::string external_name;  // image-id, else image-name, else name
  bool is_id = false;         // used as is, without a lookup
  ConnectionSettings connection;
};

// Which texts a cloud takes as names of something: letters, digits and some other characters, so many.
struct NameRule {
  std::string_view marks;  // beside letters and digits
  std::size_t least = 1;   // characters
  std::size_t most = 63;
  bool begins_with_letter = false;
  bool may_end_with_mark = true;
  bool may_have_capitals = false;

  bool Permits(std::string_view text) const;
};

// Names of hosts, of which many clouds make those of machines and images (RFC 1035): small letters, digits
// and dashes, first a letter, last no dash.
inline constexpr NameRule kHostNameRule{.marks = "-", .begins_with_letter = true, .may_end_with_mark = false};

// What the sections of clouds have in common beyond driver/provider_section.h: settings bound to the members
// of the configuration, to which a driver adds its own with Bindings::With, and functions that resolve what
// they name. All that read throw Error(kInvalid) with line and column.

// --- Launches -----------------------------------------------------------------
// Of a provider. A driver with other defaults sets the members in its configuration's constructor.
config::Binding<ProviderConfig> BootTimeout();
config::Binding<ProviderConfig> LaunchTimeout(std::string help = "Time for one attempt to create a node.");
config::Binding<ProviderConfig> LaunchRetries();

// `recheck-interval` of pools (drivers.md 5.18), of the drivers whose machines are reached over the network.
config::Binding<PoolConfig> RecheckInterval();
// `recheck`, likewise: how they are checked.
config::Binding<PoolConfig> Recheck();
// `host-key-checking` of pools, the default of their labels.
config::Binding<PoolConfig> HostKeyChecking();

// --- Images that the builder uploads --------------------------------------------
// `image-upload-timeout`, `image-name-format`, `post-upload-hook`, `max-leaked-share`.
config::Bindings<ProviderConfig> UploadSettings();

// `name` and `pause` of an entry of `diskimages`.
config::Bindings<ProviderDiskImage> DiskImageNameSettings();
// These, `meta`, `connection-type` and `connection-port`.
config::Bindings<ProviderDiskImage> DiskImageSettings();

// The disk image that an entry of `diskimages` names. Adds the provider's image format, which must be set
// before, to that image's formats, unless it is empty: not known. Adds the image to the provider's
// fingerprint.
const config::DiskImage& UseDiskImage(const config::Section& section, const ProviderDiskImage& image,
                                      config::Config& config, ProviderConfig& provider);
// The same; the disk image says how to log in.
void LogInAsDiskImage(const config::Section& section, ProviderDiskImage& image, config::Config& config,
                      ProviderConfig& provider);

// Reads the provider's `diskimages`; the disk images say how to log in.
template <class Image>
void ReadDiskImages(const config::Section& provider, const config::Bindings<Image>& settings,
                    config::Config& config, ProviderConfig& result) {
  for (const config::Section& entry : provider.Sections("diskimages")) {
    auto image = std::make_shared<Image>();
    settings.Read(entry, *image);
    LogInAsDiskImage(entry, *image, config, result);
    result.diskimages[image->name] = std::move(image);
  }
}

// --- Cloud images ---------------------------------------------------------------
// Of an entry of `cloud-images`.
config::Bindings<CloudImage> CloudImageSettings();

// Reads the provider's `cloud-images`; `check(section, image)` completes or refuses each.
template <class Image>
std::map<std::string, Image> ReadCloudImages(
    const config::Section& provider, const config::Bindings<Image>& settings,
    const std::type_identity_t<std::function<void(const config::Section&, Image&)>>& check = {}) {
  std::map<std::string, Image> images;
  for (const config::Section& entry : provider.Sections("cloud-images")) {
    Image image;
    settings.Read(entry, image);
    if (check) check(entry, image);
    std::string name = image.name;
    images[std::move(name)] = std::move(image);
  }
  return images;
}

// --- Pools and labels -------------------------------------------------------------
// Everything of a pool but its list of labels.
config::Bindings<PoolConfig> CloudPoolSettings();

// `name`, `diskimage`, `cloud-image`: a label boots one of both.
config::Bindings<LabelConfig> LabelImageSettings();
// These and `host-key-checking`.
config::Bindings<LabelConfig> LabelSettings();

// The image decides how to log in to the label's nodes. Read the provider's images first.
using FindCloudImage = std::function<const CloudImage*(const std::string& name)>;
// Throws if the label names no image, or one that there is not.
void ResolveImage(const config::Section& section, const config::Config& config, const FindCloudImage& find,
                  ProviderConfig& provider, LabelConfig& label);

// Finds an image among a driver's own cloud images, by name.
template <class Image>
FindCloudImage FindIn(const std::map<std::string, Image>& images) {
  return [&images](const std::string& name) -> const CloudImage* {
    auto found = images.find(name);
    return found == images.end() ? nullptr : &found->second;
  };
}

// A label of the pool, with its image. What it does not say is as in `defaults`, the check of host keys as in
// the pool.
template <class Label, class Image>
std::shared_ptr<Label> ReadLabel(const config::Section& section, const config::Bindings<Label>& settings,
                                 const PoolConfig& pool, const std::map<std::string, Image>& cloud_images,
                                 const config::Config& config, ProviderConfig& provider,
                                 Label defaults = {}) {
  defaults.host_key_checking = pool.host_key_checking;
  std::shared_ptr<Label> label = driver::ReadLabel(section, settings, config, defaults);
  ResolveImage(section, config, FindIn(cloud_images), provider, *label);
  return label;
}

// Keys of version 2, when every provider was an OpenStack cloud, each with its replacement.
config::Bindings<ProviderConfig> SettingsOfVersion2();

}  // namespace nodepool::driver::cloud
