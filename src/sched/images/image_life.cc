#include "sched/images/image_life.h"

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

namespace {

std::optional<NoUploadReason> WhyNot(const BuildView* current, const ProviderName& provider,
                                     const UploadSpec& spec) {
  if (spec.is_paused) return NoUploadReason::kPaused;
  if (current == nullptr) return NoUploadReason::kNoBuild;
  if (IsUploaded(*current, provider)) return NoUploadReason::kUploaded;
  bool is_built = std::ranges::find(current->formats, spec.format) != current->formats.end();
  if (!is_built) return NoUploadReason::kNotBuilt;
  if (!current->local_formats.contains(spec.format)) return NoUploadReason::kElsewhere;
  if (current->IsUploading(provider)) return NoUploadReason::kBusy;
  return std::nullopt;
}

}  // namespace

std::vector<UploadDecision> DecideUploads(const ImageView& image, const ImageSpec& spec) {
  std::vector<UploadDecision> decisions;
  const BuildView* current = CurrentBuild(image);
  for (const auto& [provider, part] : spec.providers) {
    UploadDecision& decision = decisions.emplace_back();
    decision.provider = provider;
    std::optional<NoUploadReason> why_not = WhyNot(current, provider, part);
    if (why_not) {
      decision.why_not = *why_not;
    } else {
      decision.build = current->id;
    }
  }
  return decisions;
}

std::vector<std::string> UnneededFormats(const BuildView& build, const ImageSpec& spec) {
  if (!spec.delete_after_upload || build.state != ImageState::kReady) return {};
  std::set<std::string> needed(spec.keep_formats.begin(), spec.keep_formats.end());
  for (const auto& [provider, part] : spec.providers) {
    if (!IsUploaded(build, provider)) needed.insert(part.format);
  }
  std::vector<std::string> unneeded;
  std::ranges::set_difference(build.local_formats, needed, std::back_inserter(unneeded));
  return unneeded;
}

namespace {

constexpr std::size_t kRetained = 2;  // current and previous
constexpr Duration kEmptyAge = std::chrono::minutes(5);

// The uploads that are retained though their builds need not be: for each provider the two ready
// ones that ended last, among the ready builds (builder.md 12.2).
std::set<const UploadView*> RecentUploads(const ImageView& image) {
  std::map<ProviderName, std::vector<const UploadView*>> ready;
  for (const BuildView& build : image.builds) {
    if (build.state != ImageState::kReady) continue;
    for (const UploadView& upload : build.uploads) {
      if (upload.state == ImageState::kReady) ready[upload.provider].push_back(&upload);
    }
  }
  std::set<const UploadView*> recent;
  for (auto& [provider, uploads] : ready) {
    std::ranges::stable_sort(uploads, std::ranges::greater(), &UploadView::state_time);
    for (const UploadView* upload : uploads | std::views::take(kRetained)) recent.insert(upload);
  }
  return recent;
}

bool HasEnded(ImageState state) { return state == ImageState::kReady || state == ImageState::kFailed; }

// The build that ended last, if it failed: its record says what is wrong with the image.
const BuildView* LastFailure(const ImageView& image) {
  const BuildView* last = nullptr;
  for (const BuildView& build : image.builds) {
    if (HasEnded(build.state) && (last == nullptr || build.state_time >= last->state_time)) last = &build;
  }
  return last != nullptr && last->explains_failure ? last : nullptr;
}

// Likewise, the uploads that ended last in their provider, if they failed.
std::set<const UploadView*> LastUploadFailures(const ImageView& image) {
  std::map<ProviderName, const UploadView*> last;
  for (const BuildView& build : image.builds) {
    for (const UploadView& upload : build.uploads) {
      const UploadView*& known = last[upload.provider];
      bool is_newer = known == nullptr || upload.state_time >= known->state_time;
      if (HasEnded(upload.state) && is_newer) known = &upload;
    }
  }
  std::set<const UploadView*> failures;
  for (const auto& [provider, upload] : last) {
    if (upload != nullptr && upload->explains_failure) failures.insert(upload);
  }
  return failures;
}

RemovalReason ReasonOf(const UploadView& upload, RemovalReason otherwise) {
  if (upload.state == ImageState::kDeleting) return RemovalReason::kMarked;
  if (upload.state == ImageState::kFailed) return RemovalReason::kFailed;
  if (upload.state == ImageState::kUploading) return RemovalReason::kAbandoned;
  return otherwise;
}

class Planner {
 public:
  Planner(const ImageView& image, const ImageSpec* spec, const std::set<ProviderName>& providers)
      : image_(image),
        spec_(spec),
        providers_(providers),
        recent_(RecentUploads(image)),
        last_failure_(LastFailure(image)),
        last_upload_failures_(LastUploadFailures(image)),
        retained_(RetainedBuilds(image, spec != nullptr)) {}

  CleanupPlan Plan() {
    for (const BuildView& build : image_.builds) Consider(build);
    plan_.is_image_unused = spec_ == nullptr && image_.builds.empty();
    return std::move(plan_);
  }

 private:
  void Consider(const BuildView& build) {
    bool is_retained = retained_.contains(build.id);
    bool is_deleted = build.state == ImageState::kDeleting || (!is_retained && !IsInProgress(build));
    for (const UploadView& upload : build.uploads) {
      if (providers_.contains(upload.provider)) ConsiderUpload(build, upload, is_retained, is_deleted);
    }
    if (!is_deleted || (spec_ != nullptr && &build == last_failure_)) return;
    bool is_marked = build.state == ImageState::kDeleting;
    bool is_free = std::ranges::all_of(
        build.uploads, [](const UploadView& upload) { return upload.state == ImageState::kDeleting; });
    if (is_free && !is_marked) plan_.mark.push_back({build.id, ReasonOf(build)});
    if (is_marked && build.uploads.empty()) plan_.remove.push_back(build.id);
  }

  void ConsiderUpload(const BuildView& build, const UploadView& upload, bool is_retained, bool is_deleted) {
    if (upload.state == ImageState::kUploading && build.IsUploading(upload.provider)) return;
    auto remove = [&](RemovalReason reason) {
      plan_.uploads.push_back({build.id, upload.provider, upload.id, ReasonOf(upload, reason)});
    };
    bool is_listed = spec_ != nullptr && spec_->providers.contains(upload.provider);
    if (!is_listed) {
      remove(spec_ == nullptr ? RemovalReason::kNotWanted : RemovalReason::kNotListed);
    } else if (is_deleted) {
      if (!recent_.contains(&upload)) remove(RemovalReason::kSuperseded);
    } else if (is_retained && upload.state != ImageState::kReady &&
               !last_upload_failures_.contains(&upload)) {
      remove(RemovalReason::kSuperseded);
    }
  }

  bool IsInProgress(const BuildView& build) const {
    return build.state == ImageState::kBuilding && image_.is_build_locked;
  }

  RemovalReason ReasonOf(const BuildView& build) const {
    if (build.state == ImageState::kFailed) return RemovalReason::kFailed;
    if (build.state == ImageState::kBuilding) return RemovalReason::kAbandoned;
    return spec_ == nullptr ? RemovalReason::kNotWanted : RemovalReason::kSuperseded;
  }
  RemovalReason ReasonOf(const UploadView& upload, RemovalReason otherwise) const {
    return sched::ReasonOf(upload, otherwise);
  }

  const ImageView& image_;
  const ImageSpec* spec_;
  const std::set<ProviderName>& providers_;
  std::set<const UploadView*> recent_;
  const BuildView* last_failure_;
  std::set<const UploadView*> last_upload_failures_;
  std::set<BuildId> retained_;
  CleanupPlan plan_;
};

}  // namespace

std::string_view ToString(RemovalReason reason) {
  switch (reason) {
    case RemovalReason::kNotListed:
      return "the provider does not use the image any more";
    case RemovalReason::kSuperseded:
      return "newer ones have replaced it";
    case RemovalReason::kAbandoned:
      return "the builder that made it is gone";
    case RemovalReason::kFailed:
      return "it failed";
    case RemovalReason::kMarked:
      return "it is marked for deletion";
    case RemovalReason::kNotWanted:
      return "the image is not configured";
  }
  return "";
}

bool IsLeftEmpty(WallTime created, WallTime now) { return now - created > kEmptyAge; }

std::set<BuildId> RetainedBuilds(const ImageView& image, bool is_wanted) {
  std::set<BuildId> retained;
  if (!is_wanted) return retained;
  std::vector<const BuildView*> ready;
  for (const BuildView& build : image.builds) {
    if (build.state == ImageState::kReady) ready.push_back(&build);
  }
  std::ranges::stable_sort(ready, std::ranges::greater(), &BuildView::state_time);
  for (const BuildView* build : ready | std::views::take(kRetained)) retained.insert(build->id);
  return retained;
}

CleanupPlan PlanCleanup(const ImageView& image, const ImageSpec* spec,
                        const std::set<ProviderName>& providers) {
  return Planner(image, spec, providers).Plan();
}

}  // namespace nodepool::sched
