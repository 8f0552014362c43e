#pragma once

#include <string>

#include "drivers/aws/aws_cloud.h"
#include "drivers/aws/images/upload_tags.h"

namespace nodepool::drivers::aws {

// Removes what the external id of an upload names: an image with its snapshots, or what an unfinished upload
// has left (driver-aws.md 16). What does not exist is success. Error(kRetry): not all of it could be removed
// yet.
Task<> DeleteImage(AwsCloud& cloud, std::string external_id);

// Removes everything that an upload has made: object, upload in parts, image, snapshot. Error(kRetry): a task
// of AWS still works for it.
Task<> RemoveUnfinished(AwsCloud& cloud, UploadMarks marks);

}  // namespace nodepool::drivers::aws
