#pragma once

#include "config/config.h"
#include "zk/server/server.h"

namespace nodepool::daemon {

// How the embedded server is run by a configuration.
zk::server::ServerOptions EmbeddedServerOptions(const config::EmbeddedZooKeeper& embedded);

// Makes the directory for its state where there is none. Error(kInvalid).
void MakeStateDirectory(const config::EmbeddedZooKeeper& embedded);

}  // namespace nodepool::daemon
