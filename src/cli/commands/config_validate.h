#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/arguments.h"
#include "cli/command.h"
#include "driver/loading/check_config.h"

namespace nodepool::cli {

// Checks ZooKeeper and the clouds of a configuration, and returns the exit status.
using AskOnline = std::function<int(std::shared_ptr<const driver::LoadedConfig>)>;

// `nodepool config-validate`: logs the faults of the configuration (configuration.md 13), and returns the
// exit status.
int ConfigValidate(const Invocation& invocation, const driver::Registry& drivers,
                   config::DriverSchemas others, const AskOnline& ask_online);

// Creates a provider of a configuration that is not started; it is stopped before it is destroyed.
using MakeTools = std::function<std::unique_ptr<driver::OperatorTools>(const ProviderName&)>;

// Asks each provider of the configuration, all at once, whether what its section names is there, and logs one
// line for each. False: something is wrong.
Task<bool> CheckProviders(Loop& loop, std::shared_ptr<const driver::LoadedConfig> config, MakeTools make);

// The online part of `nodepool config-validate`: awaits `connect`, which connects to the ZooKeeper `servers`,
// and checks each provider of the configuration. Logs one line for each of them. Status 1 if anything is
// wrong.
Task<int> CheckOnline(Context& context, std::string servers, Task<> connect);

}  // namespace nodepool::cli
