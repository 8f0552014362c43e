#pragma once

#include <optional>
#include <vector>

#include "sched/images/image_view.h"

namespace nodepool::sched {

enum class NoUploadReason {
  kPaused,     // by the provider's configuration; the image's own pause has no say (D-42)
  kNoBuild,    // nothing is ready
  kUploaded,   // the provider has the current build
  kNotBuilt,   // not in the provider's format; the image will be built again
  kElsewhere,  // the files are not on this host
  kBusy,       // somebody uploads it
};

// Whether a provider is to get the image's current build from here, and why not
// (builder.md 10.3).
struct UploadDecision {
  ProviderName provider;
  std::optional<BuildId> build;  // none: not now
  NoUploadReason why_not = NoUploadReason::kNoBuild;
};

// One for each provider that lists the image.
std::vector<UploadDecision> DecideUploads(const ImageView& image, const ImageWish& wish);

// Formats of the ready build that are not needed on this host any more: everything is
// uploaded, and nobody wants to keep them (delete-after-upload, builder.md 12.8).
std::vector<std::string> UnneededFormats(const BuildView& build, const ImageWish& wish);

}  // namespace nodepool::sched
