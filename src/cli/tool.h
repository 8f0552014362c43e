#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "config/config_loader.h"
#include "driver/driver.h"

namespace nodepool::cli {

// The whole `nodepool` command: parses the arguments (without the program's name), reads the configuration,
// connects, runs one command and returns the exit status (operations.md 5.1, 5.2). Adds the drivers of the
// drivers directories to `drivers`. Ctrl-C and SIGTERM end the command gracefully; a second one ends it at
// once. `others` has the schemas of drivers that are not registered.
int RunTool(std::vector<std::string> arguments, driver::Registry& drivers, config::DriverSchemas others,
            std::ostream& out, std::ostream& err);

}  // namespace nodepool::cli
