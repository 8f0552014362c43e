#include "builder/cleanup_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/task.h"
#include "base/scope_exit.h"
#include "builder/context.h"
#include "sched/images/image_life.h"

namespace nodepool::builder {

CleanupWorker::CleanupWorker(Context& context, ImageProviders& providers, const UploadWorker& uploads)
    : Worker(context, "nodepool.builder.CleanupWorker.0"), providers_(providers), uploads_(uploads) {}

SteadyTime CleanupWorker::Consider() {
  SteadyTime now = context_.loop.SteadyNow();
  bool is_pass = now >= next_pass_;
  if (is_pass) {
    next_pass_ = now + context_.intervals.cleanup;
    held_off_.clear();
  }
  for (const ImageName& image : AllImages()) {
    if (is_pass || HasMarked(image)) ConsiderImage(image, is_pass);
  }
  for (const auto& [key, created] : context_.caches.images.empty_builds()) {
    if (is_pass && sched::IsLeftEmpty(created, context_.loop.Now())) {
      StartJob(fmt::format("remove empty build {}", key), RemoveRecord(key));
    }
  }
  StartJob("local files", CleanLocal());
  // A build of an earlier process of this builder may end only now.
  if (is_pass) StartJob("temporary files", RemoveTemporary(context_));
  return next_pass_;
}

std::set<ImageName> CleanupWorker::AllImages() const {
  std::set<ImageName> images = context_.caches.images.images();
  for (const auto& [key, build] : context_.caches.images.builds()) images.insert(key.image);
  return images;
}

bool CleanupWorker::HasMarked(const ImageName& image) const {
  sched::ImageView view = ViewOf(context_, image);
  auto is_marked = [](const auto& record) { return record.state == ImageState::kDeleting; };
  return std::ranges::any_of(view.builds, [&](const sched::BuildView& build) {
    return is_marked(build) || std::ranges::any_of(build.uploads, is_marked);
  });
}

void CleanupWorker::ConsiderImage(const ImageName& image, bool is_pass) {
  std::optional<sched::ImageSpec> spec = SpecOf(*context_.config, image);
  sched::CleanupPlan plan =
      PlanCleanup(ViewOf(context_, image), spec ? &*spec : nullptr, ProvidersWithImages(*context_.config));
  for (const sched::UploadRemoval& removal : plan.uploads) {
    StartJob(fmt::format("remove upload {} of build {}-{} from {}", removal.upload, image, removal.build,
                         removal.provider),
             RemoveUpload(removal, image));
  }
  for (const sched::BuildRemoval& removal : plan.mark) {
    store::BuildKey key{image, removal.build};
    StartJob(fmt::format("mark build {}", key), MarkBuild(key, removal.reason));
  }
  for (const BuildId& build : plan.remove) {
    store::BuildKey key{image, build};
    StartJob(fmt::format("remove build {}", key), RemoveRecord(key));
  }
  if (plan.is_image_unused && is_pass) {
    StartJob(fmt::format("remove image {}", image), RemoveImage(image));
  }
}

void CleanupWorker::StartJob(std::string name, Task<> job) {
  if (held_off_.contains(name) || !running_.insert(name).second) return;
  jobs_.Spawn(name, RunJob(name, std::move(job)));
}

Task<> CleanupWorker::RunJob(std::string name, Task<> job) {
  ScopeExit ended([&] { running_.erase(name); });
  Outcome<> done = co_await Attempt(std::move(job));
  if (done) co_return;
  held_off_.insert(name);
  logger_.Error("Clean-up, {}: {}", name, done.error().message());
}

// --- Uploads -----------------------------------------------------------------------

Task<> CleanupWorker::RemoveUpload(sched::UploadRemoval removal, ImageName image) {
  store::UploadKey key{{image, removal.build}, removal.provider, removal.upload};
  std::optional<store::StoredUpload> upload = co_await context_.store.images.ReadUpload(key);
  if (!upload) co_return;
  Task<> remove = RemoveUploadIn(upload->record.state, key, removal.reason);
  if (upload->record.state != ImageState::kUploading) {
    co_await std::move(remove);
    co_return;
  }
  // A builder that uploads holds this lock.
  std::optional<zk::HeldLock> lock = co_await context_.store.images.TryLockUploads(key.build, key.provider);
  if (lock) co_await context_.store.tree.Holding(*lock, std::move(remove));
}

Task<> CleanupWorker::RemoveUploadIn(std::optional<ImageState> state, store::UploadKey key,
                                     sched::RemovalReason reason) {
  std::optional<store::StoredUpload> upload = co_await context_.store.images.ReadUpload(key);
  if (!upload || upload->record.state != state) co_return;
  logger_.Info("Removing upload {}: {}", key, ToString(reason));
  bool is_marked = co_await MarkUpload(key);
  if (!is_marked) co_return;
  // If the builder dies from here on, the record stays `deleting`, and the next sweep of any builder that
  // knows the provider continues.
  if (upload->record.external_id && !upload->record.external_id->empty()) {
    std::shared_ptr<driver::ImageStore> provider = providers_.Find(key.provider);
    if (!provider) throw Error(Verdict::kFail, fmt::format("provider {} cannot be used", key.provider));
    co_await provider->DeleteImage(*upload->record.external_id);
  }
  co_await context_.store.images.RemoveUpload(key);
}

// Returns whether the record is in `deleting` afterwards.
Task<bool> CleanupWorker::MarkUpload(store::UploadKey key) {
  std::optional<store::StoredUpload> upload = co_await context_.store.images.ReadUpload(key);
  if (!upload) co_return false;
  if (upload->record.state == ImageState::kDeleting) co_return true;
  std::optional<zk::HeldLock> lock = co_await context_.store.images.TryLockUpload(key);
  if (!lock) co_return false;
  auto change = [this](ImageUpload& record) {
    if (record.state == ImageState::kDeleting) return store::Change::kSkip;
    record.state = ImageState::kDeleting;
    record.state_time = context_.loop.Now();
    return store::Change::kWrite;
  };
  Task<bool> work = context_.store.images.Update(*upload, *lock, change);
  co_await context_.store.tree.Holding(*lock, std::move(work));
  co_return true;
}

// --- Builds ------------------------------------------------------------------------

Task<> CleanupWorker::MarkBuild(store::BuildKey key, sched::RemovalReason reason) {
  logger_.Info("Removing build {}: {}", key, ToString(reason));
  if (reason == sched::RemovalReason::kAbandoned) {
    std::optional<zk::HeldLock> building = co_await context_.store.images.TryLock(key.image);
    if (!building) co_return;
    Task<> work = MarkAbandoned(key);
    co_await context_.store.tree.Holding(*building, std::move(work));
    co_return;
  }
  std::optional<zk::HeldLock> lock = co_await context_.store.images.TryLockBuild(key);
  if (!lock) co_return;
  Task<> work = MarkBuildLocked(key, *lock);
  co_await context_.store.tree.Holding(*lock, std::move(work));
}

// While we hold the image's lock, no builder builds it or works on the record.
Task<> CleanupWorker::MarkAbandoned(store::BuildKey key) {
  std::optional<store::StoredBuild> build = co_await context_.store.images.ReadBuild(key);
  if (!build || build->record.state != ImageState::kBuilding) co_return;
  std::optional<zk::HeldLock> lock = co_await context_.store.images.TryLockBuild(key);
  if (!lock) co_return;
  Task<> work = MarkBuildLocked(key, *lock);
  co_await context_.store.tree.Holding(*lock, std::move(work));
}

Task<> CleanupWorker::MarkBuildLocked(store::BuildKey key, zk::HeldLock lock) {
  std::optional<store::StoredBuild> build = co_await context_.store.images.ReadBuild(key);
  if (!build) co_return;
  auto change = [this](ImageBuild& record) {
    if (record.state == ImageState::kDeleting) return store::Change::kSkip;
    record.state = ImageState::kDeleting;
    record.state_time = context_.loop.Now();
    return store::Change::kWrite;
  };
  co_await context_.store.images.Update(*build, lock, change);
}

Task<> CleanupWorker::RemoveRecord(store::BuildKey key) {
  bool is_removed = co_await context_.store.images.RemoveBuild(key);
  if (!is_removed) throw Error(Verdict::kConflict, "it has records of uploads that cannot be read");
}

// D-44
Task<> CleanupWorker::RemoveImage(ImageName image) {
  bool is_removed = co_await context_.store.images.Remove(image);
  if (is_removed) logger_.Info("Removed image {}, which is not configured and has no builds", image);
}

// --- Local files -------------------------------------------------------------------

Task<> CleanupWorker::CleanLocal() {
  co_await RefreshLocal(context_);
  LocalBuilds local = context_.local;
  bool is_changed = false;
  for (const auto& [key, formats] : local) {
    if (uploads_.IsReading(key)) continue;
    bool is_cleaned = co_await CleanLocalBuild(key);
    is_changed = is_changed || is_cleaned;
  }
  if (is_changed) co_await RefreshLocal(context_);
}

// Returns whether anything was removed.
Task<bool> CleanupWorker::CleanLocalBuild(store::BuildKey key) {
  bool is_gone = co_await IsGone(key);
  if (is_gone) {
    logger_.Info("Removing the files of build {}", key);
    co_await context_.files.RemoveBuild(context_.images_dir(), key);
    co_return true;
  }
  std::optional<sched::ImageSpec> spec = SpecOf(*context_.config, key.image);
  if (!spec) co_return false;
  sched::ImageView view = ViewOf(context_, key.image);
  auto build = std::ranges::find(view.builds, key.build, &sched::BuildView::id);
  if (build == view.builds.end()) co_return false;
  std::vector<std::string> unneeded = UnneededFormats(*build, *spec);
  for (const std::string& format : unneeded) {
    logger_.Info("Removing the {} file of build {}, which every provider has", format, key);
    co_await context_.files.RemoveFormat(context_.images_dir(), key, format);
  }
  co_return !unneeded.empty();
}

// Whether the build's files are no longer needed. A build that is not in the cache may be unreadable or new,
// so the tree is read.
Task<bool> CleanupWorker::IsGone(store::BuildKey key) {
  auto known = context_.caches.images.builds().find(key);
  if (known != context_.caches.images.builds().end()) {
    std::optional<ImageState> state = known->second.record.state;
    co_return state == ImageState::kDeleting || state == ImageState::kFailed;
  }
  bool exists = co_await context_.store.images.BuildExists(key);
  co_return !exists;
}

}  // namespace nodepool::builder
