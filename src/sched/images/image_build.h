#pragma once

#include <optional>
#include <string_view>

#include "sched/images/image_view.h"

namespace nodepool::sched {

enum class BuildReason {
  kMissing,    // there is no ready build
  kAged,       // the last one is older than rebuild-age
  kFormat,     // it lacks a format that is wanted now
  kFilesLost,  // a provider lacks it, and its file is gone (D-45)
  kRequested,  // somebody asked
};
std::string_view ToString(BuildReason reason);

enum class NoBuildReason {
  kPaused,    // by the configuration or in ZooKeeper
  kNoFormat,  // nobody wants the image in any format
  kBusy,      // somebody builds it
  kFresh,     // the current build will do
};

// Whether an image is to be built, and why or why not (builder.md 6).
struct BuildDecision {
  std::optional<BuildReason> reason;  // none: not now
  NoBuildReason why_not = NoBuildReason::kFresh;
  std::optional<WallTime> due_at;  // kFresh: when it comes of age
};

BuildDecision DecideBuild(const ImageView& image, const ImageWish& wish, WallTime now);

}  // namespace nodepool::sched
