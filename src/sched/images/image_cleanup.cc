#include "sched/images/image_cleanup.h"

#include <algorithm>
#include <ranges>

namespace nodepool::sched {
namespace {

constexpr std::size_t kKept = 2;  // current and previous

// The uploads that stay though their builds need not: of each provider the two ready
// ones that ended last, over the ready builds (builder.md 12.2).
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
    for (const UploadView* upload : uploads | std::views::take(kKept)) recent.insert(upload);
  }
  return recent;
}

RemovalReason ReasonOf(const UploadView& upload, RemovalReason otherwise) {
  if (upload.state == ImageState::kDeleting) return RemovalReason::kMarked;
  if (upload.state == ImageState::kFailed) return RemovalReason::kFailed;
  if (upload.state == ImageState::kUploading) return RemovalReason::kAbandoned;
  return otherwise;
}

class Planner {
 public:
  Planner(const ImageView& image, const ImageWish* wish, const std::set<ProviderName>& providers)
      : image_(image),
        wish_(wish),
        providers_(providers),
        recent_(RecentUploads(image)),
        kept_(KeptBuilds(image, wish != nullptr)) {}

  CleanupPlan Plan() {
    for (const BuildView& build : image_.builds) Consider(build);
    plan_.is_image_unused = wish_ == nullptr && image_.builds.empty();
    return std::move(plan_);
  }

 private:
  void Consider(const BuildView& build) {
    bool is_kept = kept_.contains(build.id);
    bool goes = build.state == ImageState::kDeleting || (!is_kept && !IsInProgress(build));
    for (const UploadView& upload : build.uploads) {
      if (providers_.contains(upload.provider)) ConsiderUpload(build, upload, is_kept, goes);
    }
    if (!goes) return;
    bool is_marked = build.state == ImageState::kDeleting;
    bool is_free = std::ranges::all_of(
        build.uploads, [](const UploadView& upload) { return upload.state == ImageState::kDeleting; });
    if (is_free && !is_marked) plan_.mark.push_back({build.id, ReasonOf(build)});
    if (is_marked && build.uploads.empty()) plan_.remove.push_back(build.id);
  }

  void ConsiderUpload(const BuildView& build, const UploadView& upload, bool is_kept, bool goes) {
    if (upload.state == ImageState::kUploading && build.IsUploading(upload.provider)) return;
    auto remove = [&](RemovalReason reason) {
      plan_.uploads.push_back({build.id, upload.provider, upload.id, ReasonOf(upload, reason)});
    };
    bool is_listed = wish_ != nullptr && wish_->providers.contains(upload.provider);
    if (!is_listed) {
      remove(wish_ == nullptr ? RemovalReason::kNotWanted : RemovalReason::kNotListed);
    } else if (goes ? !recent_.contains(&upload) : is_kept && upload.state != ImageState::kReady) {
      remove(RemovalReason::kSuperseded);
    }
  }

  bool IsInProgress(const BuildView& build) const {
    return build.state == ImageState::kBuilding && image_.is_build_locked;
  }

  RemovalReason ReasonOf(const BuildView& build) const {
    if (build.state == ImageState::kFailed) return RemovalReason::kFailed;
    if (build.state == ImageState::kBuilding) return RemovalReason::kAbandoned;
    return wish_ == nullptr ? RemovalReason::kNotWanted : RemovalReason::kSuperseded;
  }
  RemovalReason ReasonOf(const UploadView& upload, RemovalReason otherwise) const {
    return sched::ReasonOf(upload, otherwise);
  }

  const ImageView& image_;
  const ImageWish* wish_;
  const std::set<ProviderName>& providers_;
  std::set<const UploadView*> recent_;
  std::set<BuildId> kept_;
  CleanupPlan plan_;
};

}  // namespace

std::string_view ToString(RemovalReason reason) {
  switch (reason) {
    case RemovalReason::kNotListed:
      return "the provider does not use the image any more";
    case RemovalReason::kSuperseded:
      return "newer ones have taken its place";
    case RemovalReason::kAbandoned:
      return "whoever made it is gone";
    case RemovalReason::kFailed:
      return "it failed";
    case RemovalReason::kMarked:
      return "it is marked for deletion";
    case RemovalReason::kNotWanted:
      return "the image is not configured";
  }
  return "";
}

std::set<BuildId> KeptBuilds(const ImageView& image, bool is_wanted) {
  std::set<BuildId> kept;
  if (!is_wanted) return kept;
  std::vector<const BuildView*> ready;
  for (const BuildView& build : image.builds) {
    if (build.state == ImageState::kReady) ready.push_back(&build);
  }
  std::ranges::stable_sort(ready, std::ranges::greater(), &BuildView::state_time);
  for (const BuildView* build : ready | std::views::take(kKept)) kept.insert(build->id);
  return kept;
}

CleanupPlan PlanCleanup(const ImageView& image, const ImageWish* wish,
                        const std::set<ProviderName>& providers) {
  return Planner(image, wish, providers).Plan();
}

}  // namespace nodepool::sched
