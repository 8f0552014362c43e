#include <csignal>
#include <iostream>
#include <string_view>

#include "cli/tool.h"
#include "main/builtin_drivers.h"
#include "main/standalone.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  if (argc > 1 && std::string_view(argv[1]) == "standalone")
    return nodepool::RunStandalone(argc - 1, argv + 1);
  nodepool::driver::Registry drivers;
  nodepool::AddBuiltinDrivers(drivers);
  return nodepool::cli::RunTool({argv + 1, argv + argc}, drivers, nodepool::KnownDriverSchemas(), std::cout,
                                std::cerr);
}
