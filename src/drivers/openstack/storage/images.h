#pragma once

#include <string>
#include <vector>

#include "driver/cloud_listing.h"
#include "driver/image_upload.h"
#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

// What is sent to make an image's record (driver-openstack.md 15.2).
boost::json::object ImageProperties(const driver::ImageUploadParameters& upload, const CloudConfig& cloud);

// Brings a local file into the image service and ends with the image's id once it is
// active. An image of that name with the same checksums is not uploaded again. What
// was begun and fails, or is cancelled, is removed again.
Task<std::string> UploadImage(Session& session, driver::ImageUploadParameters upload);

// False: there is no such image. kConflict: it is in use; kInvalid: it is protected.
Task<bool> DeleteImage(Session& session, std::string id);

// The images that some Nodepool made; their metadata are the nodepool_* properties.
Task<std::vector<driver::ListedImage>> ListOwnedImages(Session& session);

// Those of our project that were made for a provider, in every state.
Task<std::vector<driver::ListedImage>> ListImagesOf(Session& session, std::string provider);

}  // namespace nodepool::drivers::openstack
