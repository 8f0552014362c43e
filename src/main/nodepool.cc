#include <algorithm>
#include <csignal>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "base/checked_output.h"
#include "cli/arguments.h"
#include "cli/tool.h"
#include "daemon/run_daemon.h"
#include "main/builtin_drivers.h"
#include "main/standalone.h"
#include "main/try_run.h"

namespace nodepool {
namespace {

// `arguments` begin with "standalone".
int RunStandalone(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  daemon::StandaloneOptions options = daemon::StandaloneDefaults();
  int argc = static_cast<int>(argv.size());
  if (auto status = daemon::ParseOptions(argc, argv.data(), *StandaloneApp(options), options)) return *status;
  if (options.is_trial) return TryRun(options);
  daemon::Program program = StandaloneProgram("nodepool standalone", options);
  program.has_zookeeper = true;
  return RunDaemon(program, options);
}

int RunCommand(std::vector<std::string> arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  driver::Registry drivers;
  AddBuiltinDrivers(drivers);
  CheckedOutput output(std::cout);
  int status = cli::RunTool(std::move(arguments), drivers, KnownDriverSchemas(), std::cout, std::cerr);
  return output.Finish("nodepool", status, std::cerr);
}

}  // namespace
}  // namespace nodepool

// The tool's options may be before the command, too.
int main(int argc, char** argv) {
  std::vector<std::string> arguments = nodepool::cli::WithoutHelpCommand({argv + 1, argv + argc});
  auto command = arguments.begin() + static_cast<std::ptrdiff_t>(nodepool::cli::PlaceOfCommand(arguments));
  bool is_standalone = command != arguments.end() && *command == "standalone";
  if (!is_standalone) return nodepool::RunCommand(std::move(arguments));
  std::rotate(arguments.begin(), command, command + 1);
  return nodepool::RunStandalone(std::move(arguments));
}
