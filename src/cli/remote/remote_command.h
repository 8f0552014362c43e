#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/remote/ssh_files.h"
#include "process/foreground.h"

namespace nodepool::cli {

// What is to be run on a node.
struct RemoteCommand {
  std::string line;    // for the node's shell; empty: an interactive login
  std::string folder;  // on the node; empty: where the login begins
  bool has_terminal = false;
  std::optional<int>
      output;  // a descriptor for all that it prints; none: our standard input, output and error
};

// Runs it by ssh. `status` becomes its exit status, also if the task was cancelled and the command could be
// ended: then the signal that interrupted us is sent to everything that it has started, and after ten seconds
// the connection is closed.
Task<> RunOnNode(Console& console, const SshFiles& files, std::string node, RemoteCommand command,
                 int& status);

// Runs a program here to its end. `status` as above; it gets the signal, too, unless the terminal has sent
// it.
Task<> RunHere(Console& console, process::ForegroundCommand command, int& status);

}  // namespace nodepool::cli
