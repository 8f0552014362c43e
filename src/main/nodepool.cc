#include <csignal>
#include <iostream>

#include "cli/tool.h"
#include "main/builtin_drivers.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  nodepool::driver::Registry drivers;
  nodepool::AddBuiltinDrivers(drivers);
  return nodepool::cli::RunTool({argv + 1, argv + argc}, drivers, nodepool::KnownDriverSchemas(), std::cout,
                                std::cerr);
}
