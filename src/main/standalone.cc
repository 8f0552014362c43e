#include "main/standalone.h"

#include "main/builder_part.h"
#include "main/builtin_drivers.h"
#include "main/launcher_part.h"
#include "main/runners_part.h"

namespace nodepool {
namespace {

daemon::Parts MakeParts(const daemon::StandaloneOptions& options, daemon::Runtime& runtime,
                        zk::Client& client) {
  daemon::Parts parts;
  launcher::Duties duties{.launches = !options.is_without_launches, .deletes = !options.is_without_deletes};
  auto launcher = std::make_unique<LauncherPart>(runtime, client, options, duties);
  launcher::Launcher& shown = launcher->launcher();
  parts.push_back(std::move(launcher));
  const auto& images_dir = runtime.config->common.images_dir;
  if (!images_dir) runtime.logger.Info("There is no images-dir, so no images are built");
  if (images_dir && !options.is_without_builder)
    parts.push_back(std::make_unique<BuilderPart>(runtime, client, options, *images_dir));
  if (!runtime.config->common.runners.empty())
    parts.push_back(std::make_unique<RunnersPart>(runtime, client));
  if (!options.is_without_webapp) parts.push_back(std::make_unique<WebPart>(runtime, shown));
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
