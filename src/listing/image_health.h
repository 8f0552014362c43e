#pragma once

#include <optional>
#include <string>
#include <vector>

#include "listing/configured.h"
#include "listing/listing.h"
#include "store/cache/image_cache.h"

namespace nodepool::listing {

// What there is of an image, beside what the configuration wants. Looks at the cache.
struct ImageHealth {
  const store::StoredBuild* newest = nullptr;  // of all builds that nobody deletes
  std::optional<WallTime> made;                // when the newest ready build was
  bool is_old = false;                // that is twice as old as rebuild-age, and the image not paused
  std::vector<ProviderName> missing;  // providers that want it and have no ready upload
  std::set<LabelName> labels;         // of these providers, which boot from it
};

// `configured` is null for an image that is not.
ImageHealth HealthOf(const store::ImageCache& images, const ImageName& image,
                     const ConfiguredImage* configured, WallTime now);

// What is wrong with a configured image, in half sentences; nothing when it is well.
std::vector<std::string> TroublesOf(const ImageHealth& health, WallTime now);

// For each label the images that providers lack which it needs: "image deb has no upload in c1".
std::map<LabelName, std::vector<std::string>> MissingImages(const store::ImageCache& images,
                                                            const Configured& configured, WallTime now);

// `image-status`: what image_listing.h lists, and with extra columns how the image is.
std::vector<Column> ImageHealthColumns();
Listing ListImageHealth(const store::ImageCache& images, const Configured& configured, WallTime now);

// The configured images that are not well, by name, and what is wrong with each.
std::vector<Column> ImageTroubleColumns();
Listing ListImageTroubles(const store::ImageCache& images, const Configured& configured, WallTime now);

}  // namespace nodepool::listing
