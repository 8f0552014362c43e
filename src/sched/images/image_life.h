#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "model/node.h"

namespace nodepool::sched {

// The input of decisions about disk images: the state of the records, and the configuration
// (builder.md 4, 5).

struct UploadView {
  ProviderName provider;
  UploadId id;
  ImageState state = ImageState::kUploading;
  WallTime state_time{};
  // It failed, its record says why, and nothing of it is in the cloud.
  bool explains_failure = false;
};

struct BuildView {
  BuildId id;
  ImageState state = ImageState::kBuilding;
  WallTime state_time{};
  std::vector<std::string> formats;
  bool explains_failure = false;  // it failed, and its record says why
  // Built by this builder, so that its files are on this host or nowhere.
  bool is_own = false;
  std::set<std::string> local_formats;  // of the image files on this host
  std::vector<UploadView> uploads;
  std::set<ProviderName> uploading_to;  // a builder holds the lock of its uploads there

  bool IsUploading(const ProviderName& provider) const { return uploading_to.contains(provider); }
};

struct ImageView {
  ImageName name;
  bool is_paused = false;        // in ZooKeeper
  bool is_requested = false;     // a build was requested
  bool is_build_locked = false;  // a builder builds it
  std::vector<BuildView> builds;
};

// What one provider wants of an image.
struct UploadSpec {
  std::string format;
  bool is_paused = false;  // nothing is uploaded there
};

// What the configuration says about an image.
struct ImageSpec {
  bool is_paused = false;
  std::vector<std::string> formats;  // to build, including the providers'
  Duration rebuild_age = std::chrono::hours(24);
  bool delete_after_upload = false;
  std::vector<std::string> keep_formats;
  std::map<ProviderName, UploadSpec> providers;  // those that list the image
};

// The ready build that ended last, or null: the only one that is uploaded.
const BuildView* CurrentBuild(const ImageView& image);

// The time of a build, or of an upload to the provider, that ends at `now`: after all others, so that it is
// the one that ended last although the clock was set back meanwhile.
WallTime EndOfBuild(const ImageView& image, WallTime now);
WallTime EndOfUpload(const ImageView& image, const ProviderName& provider, WallTime now);

// Whether the provider has a ready upload of the build.
bool IsUploaded(const BuildView& build, const ProviderName& provider);

enum class BuildReason {
  kMissing,    // there is no ready build
  kAged,       // the last one is older than rebuild-age
  kFormat,     // it lacks a required format
  kFilesLost,  // a provider lacks it, and its file is gone (D-45)
  kRequested,  // an operator requested a build
};
std::string_view ToString(BuildReason reason);

enum class NoBuildReason {
  kPaused,    // by the configuration or in ZooKeeper
  kNoFormat,  // no format of the image is required
  kBusy,      // a builder builds it
  kFresh,     // the current build is good enough
};

// Whether an image is to be built, and why or why not (builder.md 6).
struct BuildDecision {
  std::optional<BuildReason> reason;  // none: not now
  NoBuildReason why_not = NoBuildReason::kFresh;
  std::optional<WallTime> due_at;  // kFresh: when it becomes too old
};

BuildDecision DecideBuild(const ImageView& image, const ImageSpec& spec, WallTime now);

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

// Whether the znode of a build without data, created then, is left by a program that died: one that makes a
// record in two steps has done the second by now (builder.md 12.1).
bool IsLeftEmpty(WallTime created, WallTime now);

// The builds that are retained whatever their uploads: the two ready ones that ended last, if the
// image is configured.
std::set<BuildId> RetainedBuilds(const ImageView& image, bool is_wanted);

}  // namespace nodepool::sched
