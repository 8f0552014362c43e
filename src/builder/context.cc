#include "builder/context.h"

#include <utility>

#include "base/error.h"
#include "builder/build_command.h"

namespace nodepool::builder {

Task<> RefreshLocal(Context& context) {
  std::set<ImageName> images = context.caches.images.images();
  for (const auto& [name, image] : context.config->common.diskimages) images.insert(name);
  std::string directory = context.images_dir();
  Task<LocalBuilds> scan = context.files.Scan(std::move(directory), std::move(images));
  LocalBuilds seen = co_await std::move(scan);
  if (std::exchange(context.local, seen) != seen) context.local_changed();
}

Task<> RemoveTemporary(Context& context) {
  static const log::Logger logger("nodepool.builder.CleanupWorker.0");
  std::string logs = context.config->common.build_log_dir;
  std::set<std::string> folders = TemporaryFolders(context.config->common, context.environment);
  try {
    Task<std::vector<std::string>> remove =
        context.files.RemoveTemporary(std::move(logs), std::move(folders));
    std::vector<std::string> removed = co_await std::move(remove);
    for (const std::string& path : removed) logger.Info("Removed {}, left behind by a build", path);
  } catch (const Error& error) {
    if (error.verdict() == Verdict::kCancelled) throw;
    logger.Error("Files left behind by a build cannot be removed: {}", error.message());
  }
}

}  // namespace nodepool::builder
