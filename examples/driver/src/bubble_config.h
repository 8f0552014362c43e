#pragma once

#include <nodepool/config/config.h>
#include <nodepool/config/schema/schema.h>
#include <nodepool/driver/provider_config.h>

#include <memory>
#include <string>

namespace bubble {

struct Label : nodepool::driver::LabelConfig {
  std::string root = "/";  // the directory that is the container's "/"
  double ram = 512;        // MiB that it counts against the quota
};

struct Config : nodepool::driver::ProviderConfig {
  Config() {
    boot_timeout = std::chrono::seconds(30);
    launch_timeout = std::chrono::seconds(60);
  }

  std::string state_dir;           // the records of the containers, one folder each
  std::string network = "127.83";  // the first two numbers of their addresses, in 127/8
  int port = 2222;                 // of their SSH servers
  double max_containers = 100;     // of all providers that share the folder
  std::string authorized_key;      // for logging in; empty: logins are impossible
};

const nodepool::config::Schema& ProviderSchema();

// Throws nodepool::Error(kInvalid) with line and column.
std::shared_ptr<const Config> ReadConfig(const nodepool::config::ProviderSection& section,
                                         const nodepool::config::Config& config);

}  // namespace bubble
