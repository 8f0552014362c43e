#pragma once

#include "listing/listing.h"
#include "store/cache/image_cache.h"

namespace nodepool::listing {

// The lists of images of operations.md 5.4, from a complete cache; keys as in operations.md 6.3.

std::vector<Column> BuildColumns();
std::vector<Column> UploadColumns();
std::vector<Column> ImageStatusColumns();

// Builds, by image and id. A paused image's builds are all shown as paused.
Listing ListBuilds(const store::ImageCache& images);

// Uploads, by image, build, provider and number.
Listing ListUploads(const store::ImageCache& images);

// Which images are paused, and which requests exist; by image.
Listing ListImageStatus(const store::ImageCache& images);

}  // namespace nodepool::listing
