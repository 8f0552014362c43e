#pragma once

#include <optional>
#include <string>

#include "async/loop.h"
#include "base/log/logging.h"
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

// How to reach the ZooKeeper of a configuration. Throws Error(kInvalid) when the
// settings cannot be used, e.g. no server or TLS missing (D-03).
zk::WireOptions ConnectionOptions(const config::ZooKeeperSettings& settings);

// The settings, or those of the server embedded in `nodepool standalone` on this machine if they name no
// server. Its secret is read by ConnectionOptions.
config::ZooKeeperSettings EffectiveZooKeeper(config::ZooKeeperSettings settings);

// Why a client has given up its connection (SessionState::kClosed): the servers do not take what it shows.
Error RefusedForGood(const std::string& servers);

// Of a client that has a session: throws RefusedForGood() if nothing is executed for it.
Task<> CheckAdmission(zk::Client& client, std::string servers);

// Ends when the client has a session. Waits for ever and logs that, first after 3 s, then every 10 s
// (operations.md 5.2); `servers` is for that line. Throws if the client has given up.
Task<> AwaitConnection(Loop& loop, zk::Client& client, std::string servers);

// Error(kInvalid) if the Python implementation has its records in another place on these servers (D-01); it
// says how to move them. Waits like AwaitConnection.
Task<> CheckPlaceOfRecords(Loop& loop, Random& random, const config::ZooKeeperSettings& settings);

// Applies changed settings to a client in use: other servers are used from the next connection on, in the
// same session (D-32). Logs a warning for settings that need a restart, and an error for unusable ones, which
// change nothing.
void FollowSettings(zk::WireClient& client, const config::ZooKeeperSettings& before,
                    const config::ZooKeeperSettings& after);

// "host:port,host:port", for messages.
std::string ServerNames(const config::ZooKeeperSettings& settings);

}  // namespace nodepool::daemon
