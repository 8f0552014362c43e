#include "daemon/program.h"
#include "main/standalone.h"

int main(int argc, char** argv) {
  using namespace nodepool;
  daemon::StandaloneOptions options = daemon::NodepooldDefaults();
  if (auto status = daemon::ParseOptions(argc, argv, *NodepooldApp(options), options)) return *status;
  return RunDaemon(StandaloneProgram("nodepoold", options), options);
}
