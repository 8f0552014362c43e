#pragma once

#include <string>

#include "driver/provider_config.h"

namespace nodepool::driver::cloud {

// An entry of `cloud-images`: an image that exists in the cloud. Drivers derive their own with their options.
struct CloudImage {
  std::string name;
  std::string external_name;  // image-id, else image-name, else name
  bool is_id = false;         // used as is, without a lookup
  ConnectionSettings connection;
};

}  // namespace nodepool::driver::cloud
