#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "sched/images/image_view.h"

namespace nodepool::sched {

enum class RemovalReason {
  kNotListed,   // the provider's configuration does not name the image
  kSuperseded,  // newer ones have taken its place
  kAbandoned,   // whoever made it is gone
  kFailed,
  kMarked,     // somebody marked it, or a deletion was begun
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

// What has to go of an image, and why. Everything in it can be done at once, in any
// order; what becomes possible by that is in the next plan.
struct CleanupPlan {
  // Out of the cloud, then the record. One that is `uploading` has nothing in the cloud
  // that is known of.
  std::vector<UploadRemoval> uploads;
  // To become `deleting`: nothing usable depends on them any more, the files may go.
  std::vector<BuildRemoval> mark;
  // Records without any upload record left.
  std::vector<BuildId> remove;
  // Nothing is left of an image that nobody wants (D-44).
  bool is_image_unused = false;
};

// `wish` is null when the image is not configured. `providers` are those that this
// builder knows and that manage images; uploads of others are left alone (builder.md 12).
CleanupPlan PlanCleanup(const ImageView& image, const ImageWish* wish,
                        const std::set<ProviderName>& providers);

// The builds that stay whatever their uploads: the two ready ones that ended last, if
// the image is wanted.
std::set<BuildId> KeptBuilds(const ImageView& image, bool is_wanted);

}  // namespace nodepool::sched
