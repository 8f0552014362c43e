#pragma once

#include <set>

#include "listing/listing.h"
#include "store/cache/image_cache.h"

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

}  // namespace nodepool::listing
