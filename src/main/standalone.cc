#include "main/standalone.h"

#include "main/builtin_drivers.h"
#include "main/parts.h"

namespace nodepool {
namespace {

daemon::Parts MakeParts(const daemon::StandaloneOptions& options, daemon::Runtime& runtime,
                        zk::Client& client) {
  auto [launcher, web] = MakeLauncherParts(runtime, client, options,
                                           {.launches = !options.is_without_launches,
                                            .deletes = !options.is_without_deletes,
                                            .has_web = !options.is_without_webapp});
  daemon::Parts parts;
  parts.push_back(std::move(launcher));
  const auto& images_dir = runtime.config->common.images_dir;
  if (!images_dir) runtime.logger.Info("There is no images-dir, so no images are built");
  if (images_dir && !options.is_without_builder)
    parts.push_back(MakeBuilderPart(runtime, client, options, *images_dir));
  if (!runtime.config->common.runners.empty()) parts.push_back(MakeRunnersPart(runtime, client));
  if (web) parts.push_back(std::move(web));
  return parts;
}

}  // namespace

daemon::Program StandaloneProgram(std::string name, const daemon::StandaloneOptions& options) {
  return {
      .name = std::move(name),
      .logger = "nodepool.NodePool",
      .add_drivers = &AddBuiltinDrivers,
      .other_drivers = KnownDriverSchemas(),
      .make_parts = [&options](auto& runtime, auto& client) { return MakeParts(options, runtime, client); }};
}

}  // namespace nodepool
