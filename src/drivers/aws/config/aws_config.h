#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "driver/provider_config.h"
#include "driver/provider_section.h"

namespace nodepool::drivers::aws {

// An attribute of an image and what it may be.
struct ImageFilter {
  std::string name;
  std::vector<std::string> values;
  bool operator==(const ImageFilter&) const = default;
};

// An entry of `cloud-images`: with an id, or with filters.
struct AwsCloudImage : driver::cloud::CloudImage {
  std::vector<ImageFilter> filters;
};

// What a label wants of its root volume beside what the image says.
struct RootVolume {
  std::optional<int> size;  // GiB
  std::optional<std::string> type;
  std::optional<int> iops;
  std::optional<int> throughput;  // MiB/s
};

struct AwsLabel : driver::LabelConfig {
  // The kinds of machine, the preferred one first.
  std::vector<std::string> instance_types;
  // How AWS chooses among them, in a fleet; none: the launch tries one after the other.
  std::optional<std::string> fleet_strategy;
  std::optional<std::string> key_name;
  bool ebs_optimized = false;
  RootVolume volume;
  std::optional<std::string> userdata;  // may contain secrets
  // The instance profile, by one of both.
  std::optional<std::string> profile_name;
  std::optional<std::string> profile_arn;
  std::map<std::string, std::string> tags;
  std::map<std::string, std::string> dynamic_tags;  // templates
  bool use_spot = false;
  bool dedicated_host = false;        // a host for each node
  std::optional<std::string> imdsv2;  // "required" or "optional"; none: the image decides
  // Why no node of this label can be made; empty: it can.
  std::string fault;
};

// How a file becomes an image (driver-aws.md 15).
enum class ImportMethod {
  kSnapshot,   // AWS imports an object of S3 as a snapshot, of which an image is registered
  kImage,      // AWS imports an object of S3 as an image
  kEbsDirect,  // the blocks are written into a snapshot, of which an image is registered
};

// An entry of `diskimages`.
struct AwsDiskImage : driver::ProviderDiskImage {
  ImportMethod import_method = ImportMethod::kSnapshot;
  std::string architecture = "x86_64";
  bool ena_support = true;
  bool wants_imdsv2 = false;  // of its instances
  RootVolume volume = {.type = "gp3"};
};

// Where instances may be; what is not set AWS chooses.
struct AwsPlace {
  std::optional<std::string> zone;
  std::optional<std::string> subnet_id;
};

// What an instance type costs per hour, as the operator declares it; none: that is not known.
struct InstancePrice {
  std::optional<double> on_demand;
  std::optional<double> spot;
};

struct AwsPool : driver::PoolConfig {
  // As the section says.
  std::optional<std::string> zone;
  std::optional<std::string> subnet_id;
  std::vector<std::string> zones;
  std::vector<std::string> subnet_ids;

  std::vector<AwsPlace> places = {AwsPlace()};  // the preferred one first; at least one
  std::optional<std::string> security_group_id;
  bool public_ipv4 = true;
  bool public_ipv6 = false;
};

// A provider of driver `aws` (driver-aws.md 2). Its pools are AwsPool, their labels AwsLabel.
struct AwsConfig : driver::ProviderConfig {
  AwsConfig() {
    boot_timeout = std::chrono::seconds(180);
    image_format = "raw";
    // For sending the file and the import together; what AWS does has limits of its own.
    image_upload_timeout = std::chrono::hours(24);
    manages_images = true;
  }

  std::optional<std::string> region_name;
  std::optional<std::string> profile_name;
  AwsPool pool_defaults;
  double rate = 2;  // calls per second that change something; 0: unlimited
  std::map<std::string, AwsCloudImage> cloud_images;
  std::optional<std::string> bucket;            // for files of images
  std::map<std::string, InstancePrice> prices;  // by instance type
  std::optional<Duration> import_timeout;  // also how long an import waits for other tasks of the account
};

// The price of a label's instance of that type; none: it is not known, or a dedicated host is what is paid
// for.
std::optional<double> PriceOf(const AwsConfig& config, const AwsLabel& label, const std::string& type);

// Throws Error(kInvalid) with line and column; what is doubtful is added to the configuration's warnings.
std::shared_ptr<const AwsConfig> LoadAwsConfig(const config::ProviderSection& section,
                                               config::Config& config);

}  // namespace nodepool::drivers::aws
