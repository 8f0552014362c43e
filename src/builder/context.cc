#include "builder/context.h"

#include <utility>

#include "base/error.h"
#include "builder/build_worker.h"

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

namespace {

sched::UploadView ViewOf(const store::UploadKey& key, const ImageUpload& record) {
  sched::UploadView view{key.provider, key.upload, record.state.value_or(ImageState::kFailed),
                         record.state_time};
  bool is_in_cloud = !record.external_id.value_or("").empty();
  view.explains_failure = record.state == ImageState::kFailed && record.error && !is_in_cloud;
  return view;
}

sched::BuildView ViewOf(const Context& context, const store::StoredBuild& build) {
  sched::BuildView view;
  view.id = build.id.build;
  view.state = build.record.state.value_or(ImageState::kFailed);
  view.state_time = build.record.state_time;
  view.formats = build.record.formats;
  view.explains_failure = build.record.state == ImageState::kFailed && build.record.error.has_value();
  view.is_own = build.record.builder_id == context.identity.builder_id;
  if (auto local = context.local.find(build.id); local != context.local.end()) {
    for (const auto& [format, path] : local->second) view.local_formats.insert(format);
  }
  const auto& uploads = context.caches.images.uploads();
  store::UploadKey first;
  first.build = build.id;
  for (auto it = uploads.lower_bound(first); it != uploads.end() && it->first.build == build.id; ++it) {
    const auto& [key, upload] = *it;
    view.uploads.push_back(ViewOf(key, upload.record));
  }
  for (const auto& [name, provider] : context.config->providers) {
    if (context.caches.images.IsUploadLocked(build.id, name)) view.uploading_to.insert(name);
  }
  return view;
}

sched::ImageView Outline(const Context& context, const ImageName& image) {
  sched::ImageView view;
  view.name = image;
  view.is_paused = context.caches.images.paused().contains(image);
  view.is_requested = context.caches.images.build_requests().contains(image);
  view.is_build_locked = context.caches.images.IsBuildLocked(image);
  return view;
}

}  // namespace

sched::ImageView ViewOf(const Context& context, const ImageName& image) {
  sched::ImageView view = Outline(context, image);
  const auto& builds = context.caches.images.builds();
  store::BuildKey first;
  first.image = image;
  for (auto it = builds.lower_bound(first); it != builds.end() && it->first.image == image; ++it) {
    view.builds.push_back(ViewOf(context, it->second));
  }
  return view;
}

sched::ImageView ViewOf(const Context& context, const ImageName& image,
                        const std::vector<store::StoredBuild>& builds) {
  sched::ImageView view = Outline(context, image);
  for (const store::StoredBuild& build : builds) view.builds.push_back(ViewOf(context, build));
  return view;
}

std::optional<sched::ImageSpec> SpecOf(const driver::LoadedConfig& config, const ImageName& image) {
  auto found = config.common.diskimages.find(image);
  if (found == config.common.diskimages.end()) return std::nullopt;
  const config::DiskImage& settings = found->second;
  sched::ImageSpec spec;
  spec.is_paused = settings.is_paused;
  spec.formats = settings.formats;
  spec.rebuild_age = settings.rebuild_age;
  spec.delete_after_upload = settings.delete_after_upload;
  spec.keep_formats = settings.keep_formats;
  for (const auto& [name, provider] : config.providers) {
    auto part = provider->diskimages.find(image);
    if (!provider->manages_images || part == provider->diskimages.end()) continue;
    spec.providers[name] = {provider->image_format, part->second->is_paused};
  }
  return spec;
}

std::set<ProviderName> ProvidersWithImages(const driver::LoadedConfig& config) {
  std::set<ProviderName> names;
  for (const auto& [name, provider] : config.providers) {
    if (provider->manages_images) names.insert(name);
  }
  return names;
}

}  // namespace nodepool::builder
