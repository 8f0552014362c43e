#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "sched/images/image_view.h"

namespace nodepool::sched {

enum class RemovalReason {
  kNotListed,   // the provider's configuration does not name the image
  kSuperseded,  // newer ones have replaced it
  kAbandoned,   // the builder that made it is gone
  kFailed,
  kMarked,     // an operator marked it, or a deletion was begun
  kNotWanted,  // the image is not configured
};
std::string_view ToString(RemovalReason reason);

struct UploadRemoval {
  BuildId build;
  ProviderName provider;
  UploadId upload;
  RemovalReason reason = RemovalReason::kMarked;
  bool operator==(const UploadRemoval&) const = default;
};

struct BuildRemoval {
  BuildId build;
  RemovalReason reason = RemovalReason::kMarked;
  bool operator==(const BuildRemoval&) const = default;
};

// What is to be removed of an image, and why. All parts can be done at once, in any order; removals
// that they make possible are in the next plan.
struct CleanupPlan {
  // To delete from the cloud, then the record. An upload that is `uploading` has nothing in the
  // cloud as far as is known.
  std::vector<UploadRemoval> uploads;
  // To mark as `deleting`: nothing usable depends on them any more, the files may be deleted.
  std::vector<BuildRemoval> mark;
  // Records without any upload record left, to remove.
  std::vector<BuildId> remove;
  // Nothing is left of an image that is not configured (D-44).
  bool is_image_unused = false;
};

// The last failure of a configured image stays, so that operators see why: the build that ended last, and of
// each provider the upload that ended last, if its record says why it failed (builder.md 7.4).
//
// `spec` is null when the image is not configured. `providers` are those that this builder knows
// and that manage images; uploads of other providers are left alone (builder.md 12).
CleanupPlan PlanCleanup(const ImageView& image, const ImageSpec* spec,
                        const std::set<ProviderName>& providers);

// The builds that are retained whatever their uploads: the two ready ones that ended last, if the
// image is configured.
std::set<BuildId> RetainedBuilds(const ImageView& image, bool is_wanted);

}  // namespace nodepool::sched
