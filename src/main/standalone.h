#pragma once

#include "daemon/options.h"
#include "daemon/program.h"

namespace nodepool {

// Launcher, builder (with images-dir) and web server in one process, without what the command line leaves to
// other daemons. `options` outlives it.
daemon::Program StandaloneProgram(std::string name, const daemon::StandaloneOptions& options);

}  // namespace nodepool
