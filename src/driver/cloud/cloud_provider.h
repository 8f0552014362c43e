#pragma once

#include <functional>
#include <memory>

#include "driver/cloud/adapter.h"
#include "driver/cloud/framework.h"
#include "driver/provider.h"
#include "driver/provider_environment.h"

namespace nodepool::driver::cloud {

// Contacts a machine over the network and returns its host keys ("<type> <base64>"), or throws kTimedOut if
// it did not answer by the deadline. `wants_keys` false: only waits until the port accepts connections.
using HostKeyScan = std::function<Task<std::vector<std::string>>(std::string host, int port, bool wants_keys,
                                                                 SteadyTime deadline)>;

// Makes the adapter of a provider; not null.
using MakeAdapter = std::function<std::unique_ptr<Adapter>(const AdapterEnvironment&)>;

// The provider around an adapter: launches with attempts and time-outs, deletion,
// quota with a cache, leak detection, zones (drivers.md 5). All cloud drivers are
// this provider with an adapter of their own. `make` is called once, here. `scan` empty: the adapter reports
// host keys, and machines are never contacted.
std::unique_ptr<Provider> MakeCloudProvider(ProviderEnvironment environment,
                                            std::shared_ptr<const ProviderConfig> config,
                                            const MakeAdapter& make, HostKeyScan scan);

}  // namespace nodepool::driver::cloud
