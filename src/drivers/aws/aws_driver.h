#pragma once

#include "driver/cloud/http_driver.h"

namespace nodepool::drivers {

// Driver `aws`: instances of EC2. The files of the account's user are read when a provider starts, and again
// whenever its credentials are fetched.
class AwsDriver : public driver::cloud::HttpDriver {
 public:
  // `variables` replaces the environment of the process.
  explicit AwsDriver(std::optional<process::Environment> variables = std::nullopt);
};

}  // namespace nodepool::drivers
