#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "model/states.h"

// The input of decisions about disk images: the state of the records, and the configuration
// (builder.md 4, 5).
namespace nodepool::sched {

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

}  // namespace nodepool::sched
