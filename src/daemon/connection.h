#pragma once

#include "async/loop.h"
#include "base/log/logging.h"
#include "config/config.h"
#include "zk/wire/wire_client.h"

namespace nodepool::daemon {

// How to reach the ZooKeeper of a configuration. Throws Error(kInvalid) when the
// settings cannot be used, e.g. no server or TLS missing (D-03).
zk::WireOptions ConnectionOptions(const config::ZooKeeperSettings& settings);

// The settings that lead to the server within `nodepool standalone` on this machine,
// where no other is named.
config::ZooKeeperSettings OrEmbedded(config::ZooKeeperSettings settings);

// Ends when the client has a session. Waits for ever and says so, first after 3 s,
// then every 10 s (operations.md 5.2); `servers` is for that line. Throws when the
// client has given up.
Task<> AwaitConnection(Loop& loop, zk::Client& client, std::string servers);

// Refuses to go on where the Python implementation has its records at another place with these servers
// (D-01): Error(kInvalid) says how to move them. Waits as AwaitConnection.
Task<> CheckPlaceOfRecords(Loop& loop, Random& random, const config::ZooKeeperSettings& settings);

// Applies what changed to a client in use: other servers are taken from the next
// connection on, in the same session (D-32). Settings that need a restart are warned
// about, unusable ones too; then nothing changes.
void FollowSettings(zk::WireClient& client, const config::ZooKeeperSettings& before,
                    const config::ZooKeeperSettings& after);

// "host:port,host:port", for messages.
std::string ServerNames(const config::ZooKeeperSettings& settings);

}  // namespace nodepool::daemon
