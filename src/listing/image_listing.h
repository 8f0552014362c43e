#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "listing/configured.h"
#include "listing/listing.h"
#include "store/cache/cached_records.h"

namespace nodepool::listing {

// The lists of images of operations.md 5.4, from a complete cache; keys as in operations.md 6.3.

std::vector<Column> BuildColumns();
enum class UploadDetail {
  kBrief,   // the 8 columns of `image-list`
  kDetail,  // and those of `image-list --detail`
};
std::vector<Column> UploadColumns(UploadDetail detail = UploadDetail::kBrief);
std::vector<Column> ImageStatusColumns();

// Builds, by image and id. A paused image's builds are all shown as paused.
Listing ListBuilds(const store::ImageCache& images);

// Uploads, by image, build, provider and number.
Listing ListUploads(const store::ImageCache& images, UploadDetail detail = UploadDetail::kBrief);

// Which images are paused, and which requests exist; by image: those that ZooKeeper knows, or those that are
// named.
Listing ListImageStatus(const store::ImageCache& images);
Listing ListImageStatus(const store::ImageCache& images, const std::set<ImageName>& names);

// The state of an image compared with the configuration. Refers to the cache.
struct ImageHealth {
  const store::StoredBuild* newest = nullptr;  // of all builds that are not being deleted
  const store::StoredBuild* failed = nullptr;  // the one that ended last, if it failed
  std::optional<WallTime> made;                // when the newest ready build was made
  std::string log;                             // where the log of `failed` is: HOST:PATH; empty: not known
  bool is_old = false;  // the newest build is twice as old as rebuild-age, and the image is not paused
  std::vector<ProviderName> missing;  // providers that list it and have no ready upload
  // The newest upload of each provider where that has failed.
  std::map<ProviderName, const store::StoredUpload*> failed_uploads;
  std::set<LabelName> labels;  // the labels of these providers that boot from it
};

// `configured` is null for an image that is not configured.
ImageHealth HealthOf(const store::ImageCache& images, const ImageName& image,
                     const ConfiguredImage* configured, WallTime now);

// What is said of `failed`, after "its last build failed": ": dib ended with 1; log: HOST:PATH".
std::string FailureOf(const ImageHealth& health);
// "the upload to c1 failed: 403 from the cloud"
std::string UploadFailure(const ProviderName& provider, const store::StoredUpload& upload);

// What is wrong with a configured image, in phrases; empty if nothing is.
std::vector<std::string> TroublesOf(const ImageHealth& health, WallTime now);

// For each label, the images that it needs and that providers lack: "image deb has no upload in c1".
std::map<LabelName, std::vector<std::string>> MissingImages(const store::ImageCache& images,
                                                            const Configured& configured, WallTime now);

// `image-status`: the columns of image_listing.h, and columns with the state of the image. Configured images
// that were never built have a row, too.
std::vector<Column> ImageHealthColumns();
Listing ListImageHealth(const store::ImageCache& images, const Configured& configured, WallTime now);

// The configured images that have a problem, by name, and what is wrong with each.
std::vector<Column> ImageTroubleColumns();
Listing ListImageTroubles(const store::ImageCache& images, const Configured& configured, WallTime now);

}  // namespace nodepool::listing
