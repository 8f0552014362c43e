#pragma once

#include <string>
#include <vector>

#include "net/ssh/ssh_node.h"

namespace nodepool::cli {

// An inventory of the nodes for Ansible, as JSON, which its `yaml` plugin reads: hosts are named by node id,
// groups by label ("-" and the like as "_"). `ssh_config` is the path of the file that says how to reach
// them.
std::string InventoryText(const std::vector<net::SshNode>& nodes, const std::string& ssh_config);

}  // namespace nodepool::cli
