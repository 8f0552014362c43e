#include "daemon/runners_options.h"

#include <CLI/CLI.hpp>

namespace nodepool::daemon {

std::shared_ptr<CLI::App> RunnersApp(RunnersOptions& options) {
  return DaemonApp("nodepool-runners", "Runs jobs of GitHub Actions on nodes, a node for each job", options,
                   [](CLI::App&) {});
}

}  // namespace nodepool::daemon
