#include "daemon/program.h"
#include "main/builtin_drivers.h"
#include "main/parts.h"

namespace nodepool {
namespace {

daemon::Parts MakeParts(const daemon::BuilderOptions& options, daemon::Runtime& runtime, zk::Client& client) {
  const auto& images_dir = runtime.config->common.images_dir;
  if (!images_dir) throw Error(Verdict::kInvalid, options.config_path + ": the builder needs images-dir");
  daemon::Parts parts;
  parts.push_back(MakeBuilderPart(runtime, client, options, *images_dir));
  return parts;
}

}  // namespace
}  // namespace nodepool

int main(int argc, char** argv) {
  using namespace nodepool;
  daemon::BuilderOptions options;
  if (auto status = daemon::ParseOptions(argc, argv, *BuilderApp(options), options)) return *status;
  daemon::Program program{
      .name = "nodepool-builder",
      .logger = "nodepool.builder.NodePoolBuilder",
      .add_drivers = &AddBuiltinDrivers,
      .other_drivers = KnownDriverSchemas(),
      .make_parts = [&](auto& runtime, auto& client) { return MakeParts(options, runtime, client); }};
  return RunDaemon(program, options);
}
