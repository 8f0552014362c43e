#pragma once

#include <functional>
#include <memory>

#include "cli/invocation.h"
#include "driver/loading/check_config.h"

namespace nodepool::cli {

// Checks ZooKeeper and the clouds of a configuration, and returns the exit status.
using AskOnline = std::function<int(std::shared_ptr<const driver::LoadedConfig>)>;

// `nodepool config-validate`: logs the faults of the configuration (configuration.md 13), and returns the
// exit status.
int ConfigValidate(const Invocation& invocation, const driver::Registry& drivers,
                   config::DriverSchemas others, const AskOnline& ask_online);

}  // namespace nodepool::cli
