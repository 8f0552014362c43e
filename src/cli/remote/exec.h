#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/node_claim.h"
#include "net/ssh/ssh_files.h"

namespace nodepool::cli {

struct ExecOptions {
  NodeWish wish;
  // One word is a line for the shell, several are a program and its arguments. None: an interactive login to
  // the node, which must be the only one.
  std::vector<std::string> command;
  bool runs_here = false;                // on this computer, in place of the nodes
  std::optional<std::string> inventory;  // path of an Ansible inventory to write
  std::optional<std::string>
      sync;                        // a folder that is copied to each node first; the command runs in the copy
  std::vector<std::string> fetch;  // paths on the nodes that are copied to the current folder afterwards
  net::LoginOptions login;
};

// The status for everything that is not the command's own doing, above all that there are no nodes.
inline constexpr int kExecFailed = 125;

// `nodepool exec` and `nodepool ssh`: checks that this computer has the programs, obtains the nodes, logs in
// with the host keys of their records, runs the command on all of them at once, and gives the nodes back in
// any case. An interruption before the command has begun gives up; after that the signal is passed on and the
// end of the command awaited. Returns the command's status, of several nodes the first that is not 0.
Task<int> ExecOn(Console& console, NodeClaim& claim, const ExecOptions& options);

// The same on nodes that are claimed with ZooKeeper. A label or provider that no launcher serves fails
// without a request.
Task<int> Exec(Context& context, ExecOptions options);

// An inventory of the nodes for Ansible, as JSON, which its `yaml` plugin reads: hosts are named by node id,
// groups by label ("-" and the like as "_"). `ssh_config` is the path of the file that says how to reach
// them.
std::string InventoryText(const std::vector<net::SshNode>& nodes, const std::string& ssh_config);

// Why this computer cannot do what the options of `exec` ask for, whatever the nodes are: "rsync is not
// installed here; --sync needs it". Empty if it can.
std::string FaultOfThisComputer(const ExecOptions& options);

}  // namespace nodepool::cli
