#pragma once

#include "config/config.h"
#include "config/schema/bindings.h"

namespace nodepool::config {

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
