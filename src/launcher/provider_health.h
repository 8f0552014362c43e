#pragma once

#include <set>
#include <string>

#include "async/loop.h"
#include "base/log/logging.h"
#include "driver/provider_environment.h"
#include "launcher/status.h"

namespace nodepool::launcher {

// Whether one provider can be used, from the outcomes of attempts to use it. Logs a fault as an error when
// it is new, and for debugging when it is repeated, also with another request id; logs the recovery once.
class HealthRecord {
 public:
  // The loop outlives it.
  HealthRecord(Loop& loop, ProviderName name, log::Logger logger);

  const ProviderHealth& now() const { return now_; }

  // Both return whether operators see something new. `what` begins the log line: "Provider cloud cannot be
  // used".
  bool Failed(const std::string& what, driver::ProviderFault fault);
  bool Succeeded();

 private:
  void Log(const std::string& what, const driver::ProviderFault& fault);

  Loop& loop_;
  ProviderName name_;
  log::Logger logger_;
  ProviderHealth now_;
  std::set<std::string> logged_;  // causes, since it could last be used
};

}  // namespace nodepool::launcher
