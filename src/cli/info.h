#pragma once

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool info PROVIDER [--json]`: what ZooKeeper knows about one provider, its
// uploads and its nodes; an unknown provider gives empty tables (operations.md 5.4).
Task<int> Info(Context& context, ProviderName provider, Output output);

}  // namespace nodepool::cli
