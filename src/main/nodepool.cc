#include <algorithm>
#include <csignal>
#include <iostream>
#include <string_view>

#include "base/checked_output.h"
#include "cli/arguments.h"
#include "cli/tool.h"
#include "daemon/run_daemon.h"
#include "main/builtin_drivers.h"
#include "main/standalone.h"
#include "main/try_run.h"

namespace nodepool {
namespace {

// `arguments[0]` is the command's name.
int RunStandalone(int argc, char** arguments) {
  daemon::StandaloneOptions options = daemon::StandaloneDefaults();
  if (auto status = daemon::ParseOptions(argc, arguments, *StandaloneApp(options), options)) return *status;
  if (options.is_trial) return TryRun(options);
  daemon::Program program = StandaloneProgram("nodepool standalone", options);
  program.has_zookeeper = true;
  return RunDaemon(program, options);
}

int RunCommand(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  driver::Registry drivers;
  AddBuiltinDrivers(drivers);
  CheckedOutput output(std::cout);
  int status = cli::RunTool({argv + 1, argv + argc}, drivers, KnownDriverSchemas(), std::cout, std::cerr);
  return output.Finish("nodepool", status, std::cerr);
}

}  // namespace
}  // namespace nodepool

// The tool's options may be before the command, too.
int main(int argc, char** argv) {
  char** command = argv + 1 + nodepool::cli::PlaceOfCommand({argv + 1, argv + argc});
  bool is_standalone = command < argv + argc && std::string_view(*command) == "standalone";
  if (!is_standalone) return nodepool::RunCommand(argc, argv);
  std::rotate(argv + 1, command, command + 1);
  return nodepool::RunStandalone(argc - 1, argv + 1);
}
