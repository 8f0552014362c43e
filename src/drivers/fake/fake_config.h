#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "config/config.h"
#include "config/schema/schema.h"
#include "driver/provider_config.h"
#include "driver/provider_section.h"

namespace nodepool::drivers {

struct FakeFlavor {
  std::string name;
  int ram = 8192;  // MiB
  int vcpus = 4;
};

// Limits of the simulated cloud; infinite when configured as -1.
struct FakeLimits {
  double cores = 100;
  double instances = 20;
  double ram = 1'000'000;  // MiB
  double volumes = 100;
  double volume_gb = 1'000'000;
};

// How the simulated cloud behaves; defaults as in drivers.md 10.1.
struct FakeSimulation {
  Duration create_latency = std::chrono::milliseconds(100);
  Duration delete_latency = Duration::zero();  // of servers and images
  Duration upload_latency = Duration::zero();
  double create_failure_rate = 0;  // 0..1
  double delete_failure_rate = 0;
  double upload_failure_rate = 0;
  std::string image_format = "qcow2";
  std::optional<std::uint64_t> seed;     // none: not reproducible
  std::optional<std::string> directory;  // none: the cloud exists as long as the process
  std::optional<int> control_port;       // of FakeControl; 0: any
  FakeLimits limits;
  // True: creating beyond a limit is refused with a quota error. False: the limits
  // are reported, and nothing is refused.
  bool quota_error = true;
  std::vector<std::string> images = {"Fake Precise"};
  std::vector<FakeFlavor> flavors = {{.name = "Fake Flavor"}, {.name = "Unreal Flavor"}};
  std::vector<std::string> availability_zones = {"az1", "az2"};
};

struct FakeLabel : driver::LabelConfig {
  int min_ram = 0;  // MiB
  std::optional<std::string> flavor_name;
  bool console_log = false;
  bool boot_from_volume = false;
  int volume_size = 50;  // GB
  boost::json::object instance_properties;
  std::vector<std::string> networks;  // the pool's unless the label has its own
};

struct FakePool : driver::PoolConfig {
  std::vector<std::string> networks;
};

// A provider of driver `fake`. Its section is that of an openstack provider, with an optional `simulation`;
// settings without meaning for a simulated cloud are accepted and ignored. `cloud` may be any name. The
// pools are FakePool, their labels FakeLabel.
struct FakeConfig : driver::ProviderConfig {
  std::optional<std::string> cloud;
  std::optional<std::string> region_name;
  std::map<std::string, driver::cloud::CloudImage> cloud_images;
  FakeSimulation simulation;
};

const config::Schema& FakeSchema();

// Throws Error(kInvalid) with line and column. Adds the simulation's image format to
// the disk images that the provider lists.
std::shared_ptr<const FakeConfig> LoadFakeConfig(const config::ProviderSection& section,
                                                 config::Config& config);

}  // namespace nodepool::drivers
