#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "config/config_loader.h"
#include "driver/driver.h"

namespace nodepool::cli {

// The whole `nodepool` command: reads the arguments (without the program's name),
// the configuration, connects, runs one command and returns the exit status
// (operations.md 5.1, 5.2). Drivers of the drivers directories are added to `drivers`. Ctrl-C and SIGTERM end
// the command in good order; a second one at once. `others` knows the schemas of drivers that are not
// registered.
int RunTool(std::vector<std::string> arguments, driver::Registry& drivers, config::DriverSchemas others,
            std::ostream& out, std::ostream& err);

}  // namespace nodepool::cli
