#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "builder/context.h"
#include "builder/retries.h"
#include "builder/worker.h"
#include "config/config.h"
#include "process/command.h"
#include "sched/images/image_life.h"
#include "store/records.h"

namespace nodepool::builder {

// The commands that make a build, to be run in order (builder.md 8).
struct BuildPlan {
  std::vector<process::Command> commands;  // without log and time-out
  // Formats without checksum files after the commands have ended.
  std::vector<std::string> without_checksums;
};

struct BuildContext {
  process::Environment environment;  // the daemon's
  std::string helpers;               // replaces %p in dib-cmd (D-43)
};

// In which directories disk-image-create makes its temporary ones (builder.md 20.2), with the daemon's
// environment and that of each image.
std::set<std::string> TemporaryFolders(const config::Config& config, const process::Environment& environment);

// The common beginning of a build's files: <images-dir>/<image>-<build id>.
std::string LocalBase(const std::string& images_dir, const store::BuildKey& build);

// One run can make either qcow2 or other formats of qemu-img, since these do not accept the options for
// qcow2; the others are converted afterwards (D-46). Throws Error(kInvalid) if dib-cmd cannot be parsed.
BuildPlan PlanBuild(const config::Config& config, const config::DiskImage& image,
                    const store::BuildKey& build, const BuildContext& context);

// The line of a failed build's log that is most likely to say why: the last that speaks of an error, else the
// last of all; without the time stamp of diskimage-builder. Traces of shells ("+ cmd") do not count. Empty if
// nothing is left.
std::string ReasonInLog(std::string_view log);

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
  Task<> CheckImages(store::BuildKey build, std::vector<std::string> formats, Result& result);
  void Report(const Job& job);

  Retries<ImageName> retries_;
  std::set<ImageName> building_;
};

}  // namespace nodepool::builder
