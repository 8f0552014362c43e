#include <csignal>

#include "cli/builder_options.h"
#include "debug/stack_dump.h"
#include "main/builder_setup.h"
#include "main/daemon.h"
#include "main/serve.h"

namespace nodepool {
namespace {

void Run(const cli::BuilderOptions& options, process::Background& background) {
  log::Logger logger("nodepool.builder.NodePoolBuilder");
  Daemon daemon(options, background, logger);
  const auto& images_dir = daemon.config->common.images_dir;
  if (!images_dir) throw Error(Verdict::kInvalid, options.config_path + ": the builder needs images-dir");
  Serve(daemon, {.builder = BuilderSetup(options, *images_dir, daemon.random)}, logger);
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  using namespace nodepool;
  std::signal(SIGPIPE, SIG_IGN);
  debug::StackDump::BlockSignal();
  cli::BuilderOptions options;
  if (auto status = cli::ParseBuilderOptions(argc, argv, options)) return *status;
  return RunDaemon("nodepool-builder", options,
                   [&](process::Background& background) { Run(options, background); });
}
