#include <csignal>

#include "cli/launcher_options.h"
#include "debug/stack_dump.h"
#include "main/daemon.h"
#include "main/serve.h"

namespace nodepool {
namespace {

void Run(const cli::LauncherOptions& options, process::Background& background) {
  log::Logger logger("nodepool.NodePool");
  Daemon daemon(options, background, logger);
  Roles roles{.launcher = LauncherSetup(options), .has_web_server = !options.is_without_webapp};
  Serve(daemon, std::move(roles), logger);
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  using namespace nodepool;
  std::signal(SIGPIPE, SIG_IGN);
  debug::StackDump::BlockSignal();
  cli::LauncherOptions options;
  if (auto status = cli::ParseLauncherOptions(argc, argv, options)) return *status;
  return RunDaemon("nodepool-launcher", options,
                   [&](process::Background& background) { Run(options, background); });
}
