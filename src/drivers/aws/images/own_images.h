#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drivers/aws/aws_cloud.h"
#include "drivers/aws/images/snapshots.h"
#include "drivers/aws/images/upload_marks.h"

namespace nodepool::drivers::aws {

// The account's own images that have `filter` as one of `values`.
Task<std::vector<MachineImage>> ListOwnImages(Ec2& ec2, std::string filter, std::vector<std::string> values);

// None: there is no such image.
Task<std::optional<MachineImage>> FindImage(Ec2& ec2, std::string id);

// Makes an image of a snapshot (driver-aws.md 15.3); returns its id.
Task<std::string> RegisterImage(AwsCloud& cloud, const driver::ImageUploadParameters& upload,
                                const UploadMarks& marks, const Snapshot& snapshot);

// Ends when machines can be made of the image. Error(kFail): that will never be.
Task<> AwaitAvailable(AwsCloud& cloud, std::string id);

// Deregisters an image; one that does not exist is success.
Task<> DeregisterImage(Ec2& ec2, std::string id);

}  // namespace nodepool::drivers::aws
