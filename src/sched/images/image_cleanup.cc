#include "sched/images/image_cleanup.h"

#include <algorithm>
#include <ranges>

namespace nodepool::sched {
namespace {

constexpr std::size_t kRetained = 2;  // current and previous

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
