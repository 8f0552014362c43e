#pragma once

#include <optional>
#include <string>

#include "config/config.h"
#include "zk/wire/wire_client.h"

namespace nodepool::daemon {

// The file, in the embedded server's state-dir, with the secret that its clients show over plain TCP where
// jobs can connect to this host's loopback interface.
std::string ClientSecretFile(const config::EmbeddedZooKeeper& embedded);

// The secret in the file, which is made, readable for its owner alone, where there is none. The folder
// exists. Error(kInvalid): the file cannot be made, read or used.
std::string MakeClientSecret(const std::string& file);

// What a client of the server shows. None: there is no such file. With an empty secret where this user may
// not read it, or nothing in it can be used: a server that needs none takes the client nevertheless.
std::optional<zk::DigestAuth> ClientCredentials(const std::string& file);

}  // namespace nodepool::daemon
