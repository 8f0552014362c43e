#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "driver/provider_config.h"
#include "driver/provider_section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::gce {

// An entry of `cloud-images`: with an id, or with a family of a project.
struct GceCloudImage : driver::cloud::CloudImage {
  std::string project;
  std::string family;
  std::string key;  // public, for the user; empty: none
};

struct GceLabel : driver::LabelConfig {
  std::vector<std::string> instance_types;  // the preferred one first; at least one
  std::string volume_type = "pd-standard";
  int volume_size = 10;  // GB
  bool use_spot = false;
  int spot_notice = 0;  // seconds
  std::map<std::string, std::string> labels;
};

// The identity of a pool's nodes.
struct ServiceAccount {
  std::string email;
  std::vector<std::string> scopes;
};

struct GcePool : driver::PoolConfig {
  std::optional<std::string> network;
  std::optional<std::string> subnetwork;
  bool public_ipv4 = true;
  bool public_ipv6 = false;
  std::vector<std::string> tags;
  std::optional<ServiceAccount> service_account;
};

// An entry of `diskimages`.
struct GceDiskImage : driver::ProviderDiskImage {
  std::string architecture = "X86_64";
  std::vector<std::string> guest_features;
};

// A provider of driver `gce` (driver-gce.md 2). Its pools are GcePool, their labels GceLabel.
struct GceConfig : driver::ProviderConfig {
  GceConfig() {
    image_format = "raw";
    image_upload_timeout = std::chrono::hours(24);  // for the file and the import together
  }

  std::string project;
  std::string region;
  std::string zone;                // of nodes whose records do not name one
  std::vector<std::string> zones;  // the preferred one first; at least one
  double rate = 2;                 // calls per second that change something; 0: unlimited
  std::optional<int> rate_limit;   // the old setting, in place of `rate`
  std::optional<std::string> credentials_file;
  std::map<std::string, GceCloudImage> cloud_images;
  std::optional<std::string> bucket;  // for files of images
  std::optional<Duration> import_timeout;
};

// Google's rules for labels of resources (driver-gce.md 7.3).
inline constexpr std::size_t kMostLabels = 64;
inline constexpr driver::cloud::NameRule kLabelKeyRule{.marks = "_-", .begins_with_letter = true};
inline constexpr driver::cloud::NameRule kLabelValueRule{.marks = "_-", .least = 0};
// For names of instances and images.
inline constexpr driver::cloud::NameRule kResourceRule = driver::cloud::kHostNameRule;

// Those of the entries that labels may be; others are left out.
std::map<std::string, std::string> FittingLabels(const std::map<std::string, std::string>& metadata);

// Throws Error(kInvalid) with line and column; what is doubtful is added to the configuration's warnings.
std::shared_ptr<const GceConfig> LoadGceConfig(const config::ProviderSection& section,
                                               config::Config& config);

// A provider's section of driver `gce` (driver-gce.md 2); strict validation agrees with the Python validator
// about the keys that this one knows. The lists of a provider and of a pool are read by LoadGceConfig.
const Bindings<GceConfig>& GceSettings();
const Bindings<GceCloudImage>& GceCloudImageSettings();
const Bindings<GceDiskImage>& GceDiskImageSettings();
const Bindings<GcePool>& GcePoolSettings();
const Bindings<GceLabel>& GceLabelSettings();

const config::Schema& GceSchema();

}  // namespace nodepool::drivers::gce
