#pragma once

#include <optional>
#include <vector>

#include "sched/images/image_view.h"

namespace nodepool::sched {

enum class NoUploadReason {
  kPaused,     // by the provider's configuration; the image's own pause does not matter (D-42)
  kNoBuild,    // no build is ready
  kUploaded,   // the provider has the current build
  kNotBuilt,   // not in the provider's format; the image will be built again
  kElsewhere,  // the files are not on this host
  kBusy,       // a builder uploads it
};

// Whether this builder uploads the image's current build to a provider, and why not (builder.md
// 10.3).
struct UploadDecision {
  ProviderName provider;
  std::optional<BuildId> build;  // none: not now
  NoUploadReason why_not = NoUploadReason::kNoBuild;
};

// One decision for each provider that lists the image.
std::vector<UploadDecision> DecideUploads(const ImageView& image, const ImageSpec& spec);

// Formats of the ready build that this host no longer needs: everything is uploaded, and the
// configuration does not retain them (delete-after-upload, builder.md 12.8).
std::vector<std::string> UnneededFormats(const BuildView& build, const ImageSpec& spec);

}  // namespace nodepool::sched
