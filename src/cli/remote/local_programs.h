#pragma once

#include <string>

#include "cli/remote/exec.h"

namespace nodepool::cli {

// Why this computer cannot do what the options of `exec` ask for, whatever the nodes are: "rsync is not
// installed here; --sync needs it". Empty if it can.
std::string FaultOfThisComputer(const ExecOptions& options);

}  // namespace nodepool::cli
