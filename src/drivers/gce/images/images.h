#pragma once

#include <string>
#include <vector>

#include "driver/image_store.h"
#include "drivers/gce/gce_cloud.h"

// The images that the builder uploads to a project.
namespace nodepool::drivers::gce {

// Sends the file to the bucket, makes an image of it and ends with the image's name when machines can be made
// of it (driver-gce.md 13). Announces first by which id another process finds and removes what an unfinished
// upload has made; on failure or cancellation that is removed here. The object is removed in any case.
Task<std::string> UploadImage(GceCloud& cloud, driver::ImageUploadParameters upload);

// Removes what the external id of an upload names: an image, or what an unfinished upload has left. What does
// not exist is success.
Task<> DeleteImage(GceCloud& cloud, std::string external_id);

// Adds this provider's images, and objects of the bucket that are older than a day, to what is searched for
// leaks (driver-gce.md 16). What cannot be read is logged and left out.
Task<> AppendMarkedImages(GceCloud& cloud, std::vector<driver::cloud::Resource>& resources);

// Deletes one of these, if its marks are still the same.
Task<> DeleteMarkedImage(GceCloud& cloud, driver::cloud::Resource resource);

// Images that any Nodepool has uploaded to the project, for operators.
Task<std::vector<driver::ListedImage>> ListUploadedImages(GceCloud& cloud);

}  // namespace nodepool::drivers::gce
