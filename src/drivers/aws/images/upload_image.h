#pragma once

#include <string>

#include "driver/image_store.h"
#include "drivers/aws/aws_cloud.h"

namespace nodepool::drivers::aws {

// Makes an image of a file by the import method of its entry (driver-aws.md 15) and ends with its id when
// machines can be made of it. Announces first by which id another process finds and removes what an
// unfinished upload has made; on failure or cancellation that is removed here.
Task<std::string> UploadImage(AwsCloud& cloud, driver::ImageUploadParameters upload);

}  // namespace nodepool::drivers::aws
