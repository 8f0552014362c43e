#include "daemon/options.h"
#include "daemon/program.h"
#include "main/builtin_drivers.h"
#include "main/launcher_part.h"

namespace nodepool {
namespace {

daemon::Parts MakeParts(const daemon::LauncherOptions& options, daemon::Runtime& runtime,
                        zk::Client& client) {
  daemon::Parts parts;
  auto launcher = std::make_unique<LauncherPart>(runtime, client, options, launcher::Duties{});
  launcher::Launcher& shown = launcher->launcher();
  parts.push_back(std::move(launcher));
  if (!options.is_without_webapp) parts.push_back(std::make_unique<WebPart>(runtime, shown));
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
