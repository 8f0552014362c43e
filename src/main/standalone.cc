#include "main/standalone.h"

#include "cli/standalone_options.h"
#include "debug/stack_dump.h"
#include "main/builder_setup.h"
#include "main/daemon.h"
#include "main/serve.h"

namespace nodepool {
namespace {

void Run(const cli::StandaloneOptions& options, process::Background& background, bool has_zookeeper) {
  log::Logger logger("nodepool.NodePool");
  Daemon daemon(options, background, logger);
  Roles roles{.launcher = LauncherSetup(options),
              .has_web_server = !options.is_without_webapp,
              .has_zookeeper = has_zookeeper};
  roles.launcher->duties = {.launches = !options.is_without_launches, .deletes = !options.is_without_deletes};
  const auto& images_dir = daemon.config->common.images_dir;
  if (!images_dir) logger.Info("There is no images-dir, so no images are built");
  if (images_dir && !options.is_without_builder) {
    roles.builder = BuilderSetup(options, *images_dir, daemon.random);
  }
  Serve(daemon, std::move(roles), logger);
}

}  // namespace

int RunStandalone(int argc, char** arguments) {
  debug::StackDump::BlockSignal();
  cli::StandaloneOptions options = cli::StandaloneDefaults();
  if (auto status = cli::ParseStandaloneOptions(argc, arguments, options)) return *status;
  return RunDaemon("nodepool standalone", options,
                   [&](process::Background& background) { Run(options, background, true); });
}

int RunNodepoold(int argc, char** arguments) {
  debug::StackDump::BlockSignal();
  cli::StandaloneOptions options = cli::NodepooldDefaults();
  if (auto status = cli::ParseNodepooldOptions(argc, arguments, options)) return *status;
  return RunDaemon("nodepoold", options,
                   [&](process::Background& background) { Run(options, background, false); });
}

}  // namespace nodepool
