#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>

#include "config/config.h"
#include "driver/cloud/cloud_image.h"
#include "driver/provider_config.h"
#include "driver/provider_section.h"

namespace nodepool::driver::cloud {

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
