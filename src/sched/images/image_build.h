#pragma once

#include <optional>
#include <string_view>

#include "sched/images/image_view.h"

namespace nodepool::sched {

enum class BuildReason {
  kMissing,    // there is no ready build
  kAged,       // the last one is older than rebuild-age
  kFormat,     // it lacks a required format
  kFilesLost,  // a provider lacks it, and its file is gone (D-45)
  kRequested,  // an operator requested a build
};
std::string_view ToString(BuildReason reason);

enum class NoBuildReason {
  kPaused,    // by the configuration or in ZooKeeper
  kNoFormat,  // no format of the image is required
  kBusy,      // a builder builds it
  kFresh,     // the current build is good enough
};

// Whether an image is to be built, and why or why not (builder.md 6).
struct BuildDecision {
  std::optional<BuildReason> reason;  // none: not now
  NoBuildReason why_not = NoBuildReason::kFresh;
  std::optional<WallTime> due_at;  // kFresh: when it becomes too old
};

BuildDecision DecideBuild(const ImageView& image, const ImageSpec& spec, WallTime now);

}  // namespace nodepool::sched
