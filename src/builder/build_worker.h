#pragma once

#include <map>
#include <set>
#include <string>

#include "builder/retries.h"
#include "builder/worker.h"
#include "sched/images/image_build.h"

namespace nodepool::builder {

// Builds images that are due (builder.md 6, 7), a few at a time.
class BuildWorker : public Worker {
 public:
  explicit BuildWorker(Context& context);

  // Images that this builder is building.
  const std::set<ImageName>& building() const { return building_; }

 private:
  struct Result;
  struct Job;

  SteadyTime Consider() override;
  std::string Circumstances(const ImageName& image) const;
  Task<> Build(ImageName image, std::string circumstances);
  Task<bool> BuildOnce(ImageName image);
  // Returns whether the build was due.
  Task<bool> BuildLocked(ImageName image, zk::HeldLock lock);
  Task<bool> IsStillDue(ImageName image, bool is_requested);
  ImageBuild NewRecord(const config::DiskImage& image) const;
  Task<Job> Begin(ImageName image, zk::HeldLock lock, std::optional<store::Revision> request);
  Task<> Perform(Job& job);
  Task<Result> Make(store::BuildKey build, const config::Config& config, const config::DiskImage& image);
  Task<Result> RunCommands(store::BuildKey build, const config::Config& config,
                           const config::DiskImage& image, std::string log);
  // Everything after the command has ended, successfully or not.
  Task<> End(Job& job);
  Task<> Record(Job& job);
  // Returns whether the build's end was recorded. If not, removes the files, since no record will name them.
  Task<bool> RecordOrRemove(Job& job);
  Task<std::string> FindFault(store::BuildKey build, std::vector<std::string> formats);
  Task<> Report(const Job& job);

  Retries<ImageName> retries_;
  std::set<ImageName> building_;
};

}  // namespace nodepool::builder
