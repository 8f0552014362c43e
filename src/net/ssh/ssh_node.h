#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "model/node.h"

namespace nodepool::net {

// How ssh reaches a node. All texts can stand in ssh's files and on its command line as they are.
struct SshNode {
  std::string id;  // the node's id, under which the files below know it
  std::string label;
  std::string address;
  std::int64_t port = 22;
  std::string user;                    // empty: the record names none
  std::vector<std::string> host_keys;  // "<type> <base64>"
};

// Records are written by other programs, too. The error says what about this one cannot be used for a login:
// another kind of connection (winrm), no address, or text that ssh would take for something else.
Expected<SshNode> SshNodeOf(const NodeId& id, const Node& node);

}  // namespace nodepool::net
