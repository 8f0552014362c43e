#pragma once

#include "driver/cloud/http_driver.h"

namespace nodepool::drivers {

// Driver `gce`: instances of Google Compute Engine. Files with credentials are read whenever a token is
// fetched.
class GceDriver : public driver::cloud::HttpDriver {
 public:
  // `variables` replaces the environment of the process.
  explicit GceDriver(std::optional<process::Environment> variables = std::nullopt);
};

}  // namespace nodepool::drivers
