#include <csignal>
#include <iostream>
#include <string_view>

#include "cli/tool.h"
#include "daemon/run_daemon.h"
#include "main/builtin_drivers.h"
#include "main/standalone.h"

namespace nodepool {
namespace {

// `arguments[0]` is the command's name.
int RunStandalone(int argc, char** arguments) {
  daemon::StandaloneOptions options = daemon::StandaloneDefaults();
  if (auto status = daemon::ParseOptions(argc, arguments, *StandaloneApp(options), options)) return *status;
  daemon::Program program = StandaloneProgram("nodepool standalone", options);
  program.has_zookeeper = true;
  return RunDaemon(program, options);
}

int RunCommand(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  driver::Registry drivers;
  AddBuiltinDrivers(drivers);
  return cli::RunTool({argv + 1, argv + argc}, drivers, KnownDriverSchemas(), std::cout, std::cerr);
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  bool is_standalone = argc > 1 && std::string_view(argv[1]) == "standalone";
  return is_standalone ? nodepool::RunStandalone(argc - 1, argv + 1) : nodepool::RunCommand(argc, argv);
}
