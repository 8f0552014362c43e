#pragma once

#include "config/config.h"
#include "config/schema/bindings.h"

namespace nodepool::config {

// How ZooKeeper is reached, in either file. Servers and certificates that the object has already, from the
// secure file, stay: settings not in force are not checked. Ports that are not given are 0 until it is known
// whether there is TLS.
const Bindings<ZooKeeperSettings>& ConnectionSettings();

// The same with what only the main file has. Read with ReadZooKeeper.
const Bindings<ZooKeeperSettings>& MainConnectionSettings();
// Reads all of it, or nothing. Throws Error(kInvalid) with line, column and place.
void ReadZooKeeper(const Section& root, ZooKeeperSettings& result);
// Once both files are read: ports of servers that have none.
void SetUsualPorts(ZooKeeperSettings& zookeeper);

// The setting `embedded-zookeeper`.
Setting EmbeddedZooKeeperSetting();
void ReadEmbeddedZooKeeper(const Section& root, EmbeddedZooKeeper& result);

// The top level of nodepool.yaml (configuration.md 4-8, 16). Entries of `providers`
// are left open here: each driver has its own schema.
const Schema& MainSchema();

// What of it is read into Config as it is.
const Bindings<Config>& TopLevelSettings();
// Of an entry of `labels`.
const Bindings<Label>& MainLabelSettings();

// The part of the secure file that the daemons read (configuration.md 10).
const Schema& SecureSchema();

}  // namespace nodepool::config
