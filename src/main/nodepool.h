#pragma once

#include "daemon/options.h"

namespace nodepool {

// `nodepool standalone --try` (operations.md 1.1): runs a launcher with a configuration that belongs to
// others, to see what it makes of it. ZooKeeper and web server are its own, on free ports of the loopback
// interface with their state in a folder that is removed at the end; nothing is launched, deleted, built,
// uploaded or sent to statsd. Prints the page's address, and what each provider finds wrong, for the first
// configuration and each changed one. Returns the exit status.
int TryRun(daemon::StandaloneOptions options);

}  // namespace nodepool
