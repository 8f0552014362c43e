#pragma once

#include "config/config.h"
#include "zk/server/server.h"

namespace nodepool::daemon {

// The embedded server's options according to the configuration, with a new password for the clients in this
// process.
zk::server::ServerOptions EmbeddedServerOptions(const config::EmbeddedZooKeeper& embedded);

// Creates the directory for its state if there is none. Error(kInvalid).
void MakeStateDirectory(const config::EmbeddedZooKeeper& embedded);

}  // namespace nodepool::daemon
