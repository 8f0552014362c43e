#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/schema/section.h"
#include "driver/provider_config.h"

namespace nodepool::driver::cloud {

// What the sections of clouds have in common beyond driver/provider_section.h: settings for their schemas, to
// which a driver adds its own with Schema::With, and functions that read them. All throw Error(kInvalid) with
// line and column.

// --- Launches -----------------------------------------------------------------
// For the provider's schema; times in seconds.
config::Setting BootTimeout(int usual = 60);
config::Setting LaunchTimeout(int usual = 3600, std::string help = "Time for one attempt to create a node.");
config::Setting LaunchRetries();
// Reads all three.
void ReadLaunchSettings(const config::Section& provider, ProviderConfig& result);

// --- Images that the builder uploads --------------------------------------------
// `image-upload-timeout`, `image-name-format`, `post-upload-hook`, `max-leaked-share`.
std::vector<config::Setting> UploadSettings(int usual_timeout = 3600);
void ReadUploadSettings(const config::Section& provider, ProviderConfig& result);

// An entry of `diskimages`.
config::Schema DiskImageSchema();
// Reads `name` and `pause`, and returns the disk image that the entry names. Adds the provider's image
// format, which must be set before, to that image's formats, unless it is empty: not known. Adds the image to
// the provider's fingerprint.
const config::DiskImage& ReadDiskImageName(const config::Section& section, config::Config& config,
                                           ProviderConfig& provider, ProviderDiskImage& result);
// Reads all of it.
void ReadDiskImage(const config::Section& section, config::Config& config, ProviderConfig& provider,
                   ProviderDiskImage& result);

// --- Cloud images ---------------------------------------------------------------
// An entry of `cloud-images`.
struct CloudImage {
  std::string name;
  std::string external_name;  // image-id, else image-name, else name
  bool is_id = false;         // used as is, without a lookup
  ConnectionSettings connection;
};

config::Schema CloudImageSchema();
void ReadCloudImage(const config::Section& section, CloudImage& result);

// --- Pools and labels -------------------------------------------------------------
config::Schema PoolSchema(config::Schema label);
// Reads everything but the labels, which the driver reads.
void ReadCloudPool(const config::Section& section, const config::Section& provider, PoolConfig& result);

// A label boots a diskimage or a cloud image, not both.
config::Schema LabelSchema();
// The image decides how to log in to the label's nodes. Read the provider's images first.
using FindCloudImage = std::function<const CloudImage*(const std::string& name)>;
void ReadLabel(const config::Section& section, const config::Section& pool, const config::Config& config,
               const FindCloudImage& find, ProviderConfig& provider, LabelConfig& result);

// Reads only which image the label boots; neither: an error.
void ReadLabelImage(const config::Section& section, const config::Config& config, const FindCloudImage& find,
                    ProviderConfig& provider, LabelConfig& label);

// For ReadLabel: finds an image among a driver's own cloud images, by name.
template <class Image>
FindCloudImage FindIn(const std::map<std::string, Image>& images) {
  return [&images](const std::string& name) -> const CloudImage* {
    auto found = images.find(name);
    return found == images.end() ? nullptr : &found->second;
  };
}

// Keys of version 2, when every provider was an OpenStack cloud, each with its replacement.
std::vector<config::Setting> SettingsOfVersion2();

}  // namespace nodepool::driver::cloud
