#pragma once

#include <string>
#include <vector>

#include "driver/image_store.h"
#include "driver/operator_tools.h"
#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

// The request's body that creates an image's record (driver-openstack.md 15.2).
boost::json::object ImageProperties(const driver::ImageUploadParameters& upload, const CloudConfig& cloud);

// Uploads a local file to the image service and ends with the image's id once it is active and, as far as the
// service tells, contains what was sent. An image of that name that exists already is somebody else's. On
// failure or cancellation the incomplete image is removed.
Task<std::string> UploadImage(Session& session, driver::ImageUploadParameters upload);

// False: the image does not exist. kConflict: it is in use; kInvalid: it is protected.
Task<bool> DeleteImage(Session& session, std::string id);

// The images made by any Nodepool; their metadata are the nodepool_* properties.
Task<std::vector<driver::ListedImage>> ListOwnedImages(Session& session);

// The images of our project made for a provider, in any state.
Task<std::vector<driver::ListedImage>> ListImagesOf(Session& session, std::string provider);

}  // namespace nodepool::drivers::openstack
