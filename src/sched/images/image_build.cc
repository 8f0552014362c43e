#include "sched/images/image_build.h"

#include <algorithm>
#include <ranges>

namespace nodepool::sched {
namespace {

bool LacksFormat(const BuildView& build, const ImageSpec& spec) {
  return std::ranges::any_of(spec.formats, [&](const std::string& format) {
    return std::ranges::find(build.formats, format) == build.formats.end();
  });
}

// No other host has files of a build that was made on this one.
bool LostFiles(const BuildView& build, const ImageSpec& spec) {
  if (!build.is_own) return false;
  return std::ranges::any_of(spec.providers, [&](const auto& entry) {
    const auto& [provider, part] = entry;
    return !part.is_paused && !IsUploaded(build, provider) && !build.local_formats.contains(part.format);
  });
}

// Whole seconds, rounded down, as the Python implementation compares them (builder.md 6.1).
WallTime WholeSeconds(WallTime time) { return std::chrono::floor<std::chrono::seconds>(time); }

// Between ends that the clock would put into another order.
constexpr Duration kBetweenEnds = std::chrono::seconds(1);

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
      return "a build was requested";
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

WallTime EndOfBuild(const ImageView& image, WallTime now) {
  const BuildView* last = CurrentBuild(image);
  return last == nullptr ? now : std::max(now, last->state_time + kBetweenEnds);
}

WallTime EndOfUpload(const ImageView& image, const ProviderName& provider, WallTime now) {
  WallTime end = now;
  for (const BuildView& build : image.builds) {
    for (const UploadView& upload : build.uploads) {
      bool counts = upload.provider == provider && upload.state == ImageState::kReady;
      if (counts) end = std::max(end, upload.state_time + kBetweenEnds);
    }
  }
  return end;
}

bool IsUploaded(const BuildView& build, const ProviderName& provider) {
  return std::ranges::any_of(build.uploads, [&](const UploadView& upload) {
    return upload.provider == provider && upload.state == ImageState::kReady;
  });
}

BuildDecision DecideBuild(const ImageView& image, const ImageSpec& spec, WallTime now) {
  if (spec.is_paused || image.is_paused) return {.why_not = NoBuildReason::kPaused};
  if (spec.formats.empty()) return {.why_not = NoBuildReason::kNoFormat};
  if (image.is_build_locked) return {.why_not = NoBuildReason::kBusy};
  const BuildView* current = CurrentBuild(image);
  if (image.is_requested) return {.reason = BuildReason::kRequested};
  if (current == nullptr) return {.reason = BuildReason::kMissing};
  if (LacksFormat(*current, spec)) return {.reason = BuildReason::kFormat};
  if (LostFiles(*current, spec)) return {.reason = BuildReason::kFilesLost};
  if (WholeSeconds(now) - current->state_time >= spec.rebuild_age) return {.reason = BuildReason::kAged};
  // At the second in which the rounded age reaches the limit.
  WallTime due = current->state_time + spec.rebuild_age;
  WallTime second = WholeSeconds(due);
  return {.due_at = second < due ? second + std::chrono::seconds(1) : second};
}

}  // namespace nodepool::sched
