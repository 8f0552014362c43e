#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "config/config.h"
#include "config/schema/schema.h"
#include "driver/provider_config.h"
#include "driver/provider_section.h"
#include "drivers/openstack/config/cloud_config.h"

namespace nodepool::drivers {

// An entry of a provider's `diskimages`; `meta` are image properties.
struct OpenstackDiskImage : driver::ProviderDiskImage {
  bool config_drive = false;
};

// An entry of `cloud-images`.
struct OpenstackCloudImage : driver::cloud::CloudImage {
  bool config_drive = false;
};

struct OpenstackLabel : driver::LabelConfig {
  int min_ram = 0;  // MiB
  std::optional<std::string> flavor_name;
  std::optional<std::string> key_name;
  bool console_log = false;
  bool boot_from_volume = false;
  int volume_size = 50;  // GB
  boost::json::object instance_properties;
  std::map<std::string, std::string> dynamic_instance_properties;  // templates
  std::optional<std::string> userdata;                             // may contain secrets
  std::vector<std::string> networks;                               // the pool's unless the label has its own
};

struct OpenstackPool : driver::PoolConfig {
  std::vector<std::string> networks;  // names or ids, in order
  std::vector<std::string> security_groups;
  bool auto_floating_ip = true;
};

// A provider of driver `openstack` (driver-openstack.md 2). Its pools are
// OpenstackPool, their labels OpenstackLabel, its disk images OpenstackDiskImage.
struct OpenstackConfig : driver::ProviderConfig {
  OpenstackConfig() { image_format = "qcow2"; }

  std::optional<std::string> cloud;  // none: the default cloud
  std::optional<std::string> region_name;
  std::optional<double> rate;  // seconds between calls that change something (D-90)
  bool clean_floating_ips = false;
  Duration port_cleanup_interval = std::chrono::seconds(600);  // 0: off
  bool deletes_legacy_leaked = false;                          // servers with the metadata of 2015 (D-69)
  std::map<std::string, OpenstackCloudImage> cloud_images;

  // Null: the provider does not list the image.
  const OpenstackDiskImage* FindDiskImage(const ImageName& name) const;
};

const config::Schema& OpenstackSchema();

// Fills `result` from the section and adds `image_format`, the format that the cloud takes, to those of the
// disk images that the provider lists. Throws Error(kInvalid) with line and column.
void ReadOpenstackConfig(const config::ProviderSection& section, const std::string& image_format,
                         config::Config& config, OpenstackConfig& result);

}  // namespace nodepool::drivers

namespace nodepool::drivers::openstack {

// A provider's section together with the cloud that it names.
struct OpenstackProviderConfig : OpenstackConfig {
  CloudConfig cloud_config;
};

// Error(kInvalid) names line and column. A cloud that cannot be used, such as one that no file describes, is
// the configuration's `fault`.
std::shared_ptr<const OpenstackProviderConfig> LoadOpenstackConfig(const config::ProviderSection& section,
                                                                   config::Config& config,
                                                                   const CloudFiles& files);

}  // namespace nodepool::drivers::openstack
