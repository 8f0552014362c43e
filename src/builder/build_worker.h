#pragma once

#include <map>
#include <set>
#include <string>

#include "builder/retries.h"
#include "builder/worker.h"
#include "sched/image_build.h"

namespace nodepool::builder {

// Builds images that are due (builder.md 6, 7), a few at a time.
class BuildWorker : public Worker {
 public:
  explicit BuildWorker(Context& context);

  // Images that are being built here.
  const std::set<ImageName>& building() const { return building_; }

 private:
  struct Outcome;
  struct Job;

  SteadyTime Consider() override;
  std::string Circumstances(const ImageName& image) const;
  Task<> Build(ImageName image, std::string circumstances);
  // Whether it was due.
  Task<bool> BuildLocked(ImageName image, zk::HeldLock lock);
  Task<bool> IsStillDue(ImageName image, bool is_requested);
  ImageBuild NewRecord(const config::DiskImage& image) const;
  Task<Outcome> Make(store::BuildKey build, const config::Config& config, const config::DiskImage& image);
  Task<Outcome> RunCommands(store::BuildKey build, const config::Config& config,
                            const config::DiskImage& image, std::string log);
  // All that is done once the command has ended, however it did; to be shielded.
  Task<> End(Job job, Outcome outcome);
  Task<bool> Record(Job& job, const Outcome& outcome);
  Task<std::string> FindMissing(store::BuildKey build, std::vector<std::string> formats);
  Task<> Report(store::StoredBuild build, Outcome outcome);

  Retries<ImageName> retries_;
  std::set<ImageName> building_;
};

}  // namespace nodepool::builder
