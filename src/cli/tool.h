#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "config/config_loader.h"

namespace nodepool::cli {

// The whole `nodepool` command: reads the arguments (without the program's name),
// the configuration, connects, runs one command and returns the exit status
// (operations.md 5.1, 5.2). Ctrl-C and SIGTERM end the command in good order; a
// second one at once.
int RunTool(std::vector<std::string> arguments, config::DriverSchemas drivers, std::ostream& out,
            std::ostream& err);

}  // namespace nodepool::cli
