#pragma once

#include <string>
#include <string_view>

#include "base/ids.h"
#include "model/node.h"
#include "process/command.h"

// For commands that check a machine from outside: those of `validate` (builder.md 10.8) and `recheck`
// (drivers.md 5.18).
namespace nodepool::driver {

// The port at which the node is reached; 22 if its record names none that can be.
int ConnectionPort(const Node& node);

// `own` and what such a command finds in its environment: NODEPOOL_PROVIDER, NODEPOOL_NODE, NODEPOOL_HOST,
// NODEPOOL_PORT, NODEPOOL_USER and NODEPOOL_HOST_KEYS, a line for each key.
process::Environment MachineEnvironment(process::Environment own, const NodeId& id, const Node& node);

// ": no route to host": what a program printed last, which is likely to say why it failed; empty: nothing.
std::string LastSaid(std::string_view output);

}  // namespace nodepool::driver
