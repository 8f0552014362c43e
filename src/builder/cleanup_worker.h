#pragma once

#include <map>
#include <set>

#include "builder/image_providers.h"
#include "builder/upload_worker.h"
#include "builder/worker.h"
#include "sched/images/image_life.h"

namespace nodepool::builder {

// Removes what is no longer needed: uploads from clouds, records, local files (builder.md 12). Sweeps once a
// minute; what is marked `deleting` is removed at once. The only place where images are deleted; everything
// else marks the records.
class CleanupWorker : public Worker {
 public:
  CleanupWorker(Context& context, ImageProviders& providers, const UploadWorker& uploads);

 private:
  SteadyTime Consider() override;
  void ConsiderImage(const ImageName& image, bool is_pass);
  bool HasMarked(const ImageName& image) const;
  std::set<ImageName> AllImages() const;
  // Runs `job` unless one of that name is running. A failure is logged; the next sweep tries again.
  void StartJob(std::string name, Task<> job);
  Task<> RunJob(std::string name, Task<> job);

  Task<> RemoveUpload(sched::UploadRemoval removal, ImageName image);
  // Does nothing if the record is no longer in the state.
  Task<> RemoveUploadIn(std::optional<ImageState> state, store::UploadKey key, sched::RemovalReason reason);
  Task<bool> MarkUpload(store::UploadKey key);
  Task<> MarkBuild(store::BuildKey key, sched::RemovalReason reason);
  Task<> MarkAbandoned(store::BuildKey key);
  Task<> MarkBuildLocked(store::BuildKey key, zk::HeldLock lock);
  Task<> RemoveRecord(store::BuildKey key);
  Task<> RemoveImage(ImageName image);
  Task<> CleanLocal();
  Task<bool> CleanLocalBuild(store::BuildKey key);
  Task<bool> IsGone(store::BuildKey key);

  ImageProviders& providers_;
  const UploadWorker& uploads_;
  SteadyTime next_pass_{};
  std::set<std::string> running_;
  std::set<std::string> held_off_;  // jobs that failed: not before the next sweep
};

}  // namespace nodepool::builder
