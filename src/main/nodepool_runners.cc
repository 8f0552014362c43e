#include "daemon/options.h"
#include "daemon/program.h"
#include "main/builtin_drivers.h"
#include "main/parts.h"

namespace nodepool {
namespace {

daemon::Parts MakeRunnersParts(daemon::Runtime& runtime, zk::Client& client) {
  daemon::Parts parts;
  parts.push_back(MakeRunnersPart(runtime, client));
  return parts;
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  using namespace nodepool;
  daemon::RunnersOptions options;
  if (auto status = daemon::ParseOptions(argc, argv, *RunnersApp(options), options)) return *status;
  daemon::Program program{.name = "nodepool-runners",
                          .logger = "nodepool.runners",
                          .add_drivers = &AddBuiltinDrivers,
                          .other_drivers = KnownDriverSchemas(),
                          .make_parts = &MakeRunnersParts};
  return RunDaemon(program, options);
}
