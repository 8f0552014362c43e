#pragma once

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool erase PROVIDER [--force]`: removes the records of a provider's uploads and nodes from ZooKeeper,
// after a confirmation unless forced (operations.md 5.8). Changes nothing in the cloud.
Task<int> Erase(Context& context, ProviderName provider, bool is_forced);

}  // namespace nodepool::cli
