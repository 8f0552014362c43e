#include "sched/images/image_build.h"

#include <algorithm>
#include <ranges>

namespace nodepool::sched {
namespace {

bool LacksFormat(const BuildView& build, const ImageWish& wish) {
  return std::ranges::any_of(wish.formats, [&](const std::string& format) {
    return std::ranges::find(build.formats, format) == build.formats.end();
  });
}

// Nobody else has files of a build that was made here.
bool LostFiles(const BuildView& build, const ImageWish& wish) {
  if (!build.is_own) return false;
  return std::ranges::any_of(wish.providers, [&](const auto& entry) {
    const auto& [provider, part] = entry;
    return !part.is_paused && !IsUploaded(build, provider) && !build.local_formats.contains(part.format);
  });
}

// Whole seconds, rounded down, as everybody compares them (builder.md 6.1).
WallTime WholeSeconds(WallTime time) { return std::chrono::floor<std::chrono::seconds>(time); }

}  // namespace

std::string_view ToString(BuildReason reason) {
  switch (reason) {
    case BuildReason::kMissing:
      return "there is no ready build";
    case BuildReason::kAged:
      return "the last build is old";
    case BuildReason::kFormat:
      return "the last build lacks a format";
    case BuildReason::kFilesLost:
      return "the files of the last build are gone and a provider lacks it";
    case BuildReason::kRequested:
      return "it was asked for";
  }
  return "";
}

const BuildView* CurrentBuild(const ImageView& image) {
  const BuildView* current = nullptr;
  for (const BuildView& build : image.builds) {
    if (build.state != ImageState::kReady) continue;
    if (current == nullptr || build.state_time > current->state_time) current = &build;
  }
  return current;
}

bool IsUploaded(const BuildView& build, const ProviderName& provider) {
  return std::ranges::any_of(build.uploads, [&](const UploadView& upload) {
    return upload.provider == provider && upload.state == ImageState::kReady;
  });
}

BuildDecision DecideBuild(const ImageView& image, const ImageWish& wish, WallTime now) {
  if (wish.is_paused || image.is_paused) return {.why_not = NoBuildReason::kPaused};
  if (wish.formats.empty()) return {.why_not = NoBuildReason::kNoFormat};
  if (image.is_build_locked) return {.why_not = NoBuildReason::kBusy};
  const BuildView* current = CurrentBuild(image);
  if (image.is_requested) return {.reason = BuildReason::kRequested};
  if (current == nullptr) return {.reason = BuildReason::kMissing};
  if (LacksFormat(*current, wish)) return {.reason = BuildReason::kFormat};
  if (LostFiles(*current, wish)) return {.reason = BuildReason::kFilesLost};
  if (WholeSeconds(now) - current->state_time >= wish.rebuild_age) return {.reason = BuildReason::kAged};
  // At the second in which the rounded age reaches the limit.
  WallTime due = current->state_time + wish.rebuild_age;
  WallTime second = WholeSeconds(due);
  return {.due_at = second < due ? second + std::chrono::seconds(1) : second};
}

}  // namespace nodepool::sched
