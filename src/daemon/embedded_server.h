#pragma once

#include "config/config.h"
#include "zk/server/server.h"

namespace nodepool::daemon {

struct Runtime;

// The embedded server's options according to the configuration.
zk::server::ServerOptions EmbeddedServerOptions(const config::EmbeddedZooKeeper& embedded);

// The same for the server of a daemon: it knows the daemon's own sessions, and keeps `runtime.state_fault` up
// to date from any thread. `runtime` outlives it.
zk::server::ServerOptions OwnServerOptions(const config::EmbeddedZooKeeper& embedded, Runtime& runtime);

// Creates the directory for its state if there is none. Error(kInvalid).
void MakeStateDirectory(const config::EmbeddedZooKeeper& embedded);

}  // namespace nodepool::daemon
