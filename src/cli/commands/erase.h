#pragma once

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool erase PROVIDER [--force]`: removes what ZooKeeper knows of a provider, uploads and
// nodes, after a question unless forced (operations.md 5.8). Nothing in the cloud is touched.
Task<int> Erase(Context& context, ProviderName provider, bool is_forced);

}  // namespace nodepool::cli
