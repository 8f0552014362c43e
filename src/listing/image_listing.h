#pragma once

#include "listing/listing.h"
#include "store/cache/image_cache.h"

namespace nodepool::listing {

// What operations.md 5.4 lists of images, from a cache that is complete; keys as in operations.md 6.3.

std::vector<Column> BuildColumns();
std::vector<Column> UploadColumns();
std::vector<Column> ImageStatusColumns();

// Builds, by image and id. A paused image's builds are all shown as paused.
Listing ListBuilds(const store::ImageCache& images);

// Uploads, by image, build, provider and number.
Listing ListUploads(const store::ImageCache& images);

// What is paused, and what was asked for; by image.
Listing ListImageStatus(const store::ImageCache& images);

}  // namespace nodepool::listing
