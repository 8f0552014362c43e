#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "listing/configured.h"
#include "listing/listing.h"
#include "store/cache/image_cache.h"

namespace nodepool::listing {

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
