#include "sched/images/image_upload.h"

#include <algorithm>

namespace nodepool::sched {
namespace {

std::optional<NoUploadReason> WhyNot(const BuildView* current, const ProviderName& provider,
                                     const ProviderWish& wish) {
  if (wish.is_paused) return NoUploadReason::kPaused;
  if (current == nullptr) return NoUploadReason::kNoBuild;
  if (IsUploaded(*current, provider)) return NoUploadReason::kUploaded;
  bool is_built = std::ranges::find(current->formats, wish.format) != current->formats.end();
  if (!is_built) return NoUploadReason::kNotBuilt;
  if (!current->local_formats.contains(wish.format)) return NoUploadReason::kElsewhere;
  if (current->IsUploading(provider)) return NoUploadReason::kBusy;
  return std::nullopt;
}

}  // namespace

std::vector<UploadDecision> DecideUploads(const ImageView& image, const ImageWish& wish) {
  std::vector<UploadDecision> decisions;
  const BuildView* current = CurrentBuild(image);
  for (const auto& [provider, part] : wish.providers) {
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

std::vector<std::string> UnneededFormats(const BuildView& build, const ImageWish& wish) {
  if (!wish.delete_after_upload || build.state != ImageState::kReady) return {};
  std::set<std::string> needed(wish.keep_formats.begin(), wish.keep_formats.end());
  for (const auto& [provider, part] : wish.providers) {
    if (!IsUploaded(build, provider)) needed.insert(part.format);
  }
  std::vector<std::string> unneeded;
  std::ranges::set_difference(build.local_formats, needed, std::back_inserter(unneeded));
  return unneeded;
}

}  // namespace nodepool::sched
