#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "model/states.h"

// What decisions about disk images rest on: how the records stand, and what the
// configuration wants (builder.md 4, 5).
namespace nodepool::sched {

struct UploadView {
  ProviderName provider;
  UploadId id;
  ImageState state = ImageState::kUploading;
  WallTime state_time{};
};

struct BuildView {
  BuildId id;
  ImageState state = ImageState::kBuilding;
  WallTime state_time{};
  std::vector<std::string> formats;
  // Made by this builder, so that its files are here or nowhere.
  bool is_own = false;
  std::set<std::string> local_formats;  // of the image files on this host
  std::vector<UploadView> uploads;
  std::set<ProviderName> uploading_to;  // somebody holds the lock of its uploads there

  bool IsUploading(const ProviderName& provider) const { return uploading_to.contains(provider); }
};

struct ImageView {
  ImageName name;
  bool is_paused = false;        // in ZooKeeper
  bool is_requested = false;     // somebody asked for a build
  bool is_build_locked = false;  // somebody builds it
  std::vector<BuildView> builds;
};

// One provider's part in an image.
struct ProviderWish {
  std::string format;
  bool is_paused = false;  // nothing is uploaded there
};

// What the configuration says about an image.
struct ImageWish {
  bool is_paused = false;
  std::vector<std::string> formats;  // to build, the providers' included
  Duration rebuild_age = std::chrono::hours(24);
  bool delete_after_upload = false;
  std::vector<std::string> keep_formats;
  std::map<ProviderName, ProviderWish> providers;  // those that list the image
};

// The ready build that ended last, or null: the only one that is uploaded.
const BuildView* CurrentBuild(const ImageView& image);

// Whether the provider has a ready upload of the build.
bool IsUploaded(const BuildView& build, const ProviderName& provider);

}  // namespace nodepool::sched
