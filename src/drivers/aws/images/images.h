#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/driver.h"
#include "drivers/aws/api/services.h"
#include "drivers/aws/images/image_import.h"

namespace nodepool::drivers::aws {

// The images of a provider: what AwsAdapter is asked about them.

// The tags of an object, as long as its content is the same.
struct TaggedObject {
  std::string etag;
  std::map<std::string, std::string> tags;
};

// What sweeps for leaked images remember, so that nothing is read twice.
struct ImageSweep {
  std::set<std::string> repaired_tasks;         // import tasks whose results have tags
  std::map<std::string, TaggedObject> objects;  // by key
};

// What uploads, removals and sweeps of one provider's images share. Everything outlives it.
struct ImageContext {
  const driver::DriverEnvironment& environment;
  const AwsConfig& config;
  Services& services;
  log::Logger logger;
  ImageSweep sweep = {};

  Loop& loop() const { return environment.loop; }
};

// Makes an image of a file by the import method of its entry (driver-aws.md 15) and ends with its id when
// machines can be made of it. Announces first by which id another process finds and removes what an
// unfinished upload has made; on failure or cancellation that is removed here.
Task<std::string> UploadImage(ImageContext& context, driver::ImageUploadParameters upload);

// Removes what the external id of an upload names: an image with its snapshots, or what an unfinished upload
// has left (driver-aws.md 16). What does not exist is success. Error(kRetry): not all of it could be removed
// yet.
Task<> DeleteImage(ImageContext& context, std::string external_id);

// Removes everything that an upload has made: object, upload in parts, image, snapshot. Error(kRetry): a task
// of AWS still works for it.
Task<> RemoveUnfinished(Services& services, log::Logger logger, UploadMarks marks);

// Images that any Nodepool has uploaded to the account, for operators.
Task<std::vector<driver::ListedImage>> ListUploadedImages(Ec2& ec2);

// Adds this provider's images, snapshots and objects to what is searched for leaks (driver-aws.md 17), images
// before their snapshots. First gives untagged results of import tasks the tags of their task. What cannot be
// read is logged and left out.
Task<> AppendMarkedImages(ImageContext& context, std::vector<driver::cloud::Resource>& resources);

// Whether it is one of these, and their deletion.
bool IsOfImages(const driver::cloud::Resource& resource);
Task<> DeleteMarkedImage(Services& services, driver::cloud::Resource resource);

// Aborts uploads in parts with names of this provider's images that began more than a day ago: lists of
// objects do not show them, and they have no tags.
Task<> AbortOldUploads(ImageContext& context);

}  // namespace nodepool::drivers::aws
