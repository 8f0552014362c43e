#include "daemon/options.h"
#include "daemon/program.h"
#include "main/builtin_drivers.h"
#include "main/parts.h"

namespace nodepool {
namespace {

daemon::Parts MakeParts(const daemon::LauncherOptions& options, daemon::Runtime& runtime,
                        zk::Client& client) {
  auto [launcher, web] = MakeLauncherParts(runtime, client, options, {.has_web = !options.is_without_webapp});
  daemon::Parts parts;
  parts.push_back(std::move(launcher));
  if (web) parts.push_back(std::move(web));
  return parts;
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  using namespace nodepool;
  daemon::LauncherOptions options;
  if (auto status = daemon::ParseOptions(argc, argv, *LauncherApp(options), options)) return *status;
  daemon::Program program{
      .name = "nodepool-launcher",
      .logger = "nodepool.NodePool",
      .add_drivers = &AddBuiltinDrivers,
      .other_drivers = KnownDriverSchemas(),
      .make_parts = [&](auto& runtime, auto& client) { return MakeParts(options, runtime, client); }};
  return RunDaemon(program, options);
}
