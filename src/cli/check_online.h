#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/command.h"

namespace nodepool::cli {

// Creates a provider of a configuration that is not started; it is stopped before it is destroyed.
using MakeProvider = std::function<std::unique_ptr<driver::Provider>(const ProviderName&)>;

// Asks each provider of the configuration, all at once, whether what its section names is there, and logs one
// line for each. False: something is wrong.
Task<bool> CheckProviders(Loop& loop, std::shared_ptr<const driver::LoadedConfig> config, MakeProvider make);

// The online part of `nodepool config-validate`: awaits `connect`, which connects to the ZooKeeper `servers`,
// and checks each provider of the configuration. Logs one line for each of them. Status 1 if anything is
// wrong.
Task<int> CheckOnline(Context& context, std::string servers, Task<> connect);

}  // namespace nodepool::cli
