#pragma once

#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "drivers/aws/api/ec2.h"
#include "drivers/aws/images/upload_tags.h"
#include "drivers/aws/storage/machine_images.h"

namespace nodepool::drivers::aws {

// A copy of a volume, of which images are made.
struct Snapshot {
  std::string id;
  std::string state;  // "pending", "completed", "error"
  int size = 0;       // GiB
  std::map<std::string, std::string> tags;
  std::string message = "";  // about its state
};

std::vector<Snapshot> ReadSnapshots(const pugi::xml_node& root);

// The account's own that have `filter` as one of `values`; those that do not exist are left out.
Task<std::vector<Snapshot>> ListSnapshots(Ec2& ec2, std::string filter, std::vector<std::string> values);

// A snapshot that does not exist is success.
Task<> DeleteSnapshot(Ec2& ec2, std::string id);

// Adds tags to anything of EC2.
Task<> AddTags(Ec2& ec2, std::string id, const std::map<std::string, std::string>& tags);

// The account's own images that have `filter` as one of `values`.
Task<std::vector<MachineImage>> ListOwnImages(Ec2& ec2, std::string filter, std::vector<std::string> values);

// None: there is no such image.
Task<std::optional<MachineImage>> FindImage(Ec2& ec2, std::string id);

// Makes an image of a snapshot (driver-aws.md 15.3); returns its id.
Task<std::string> RegisterImage(Loop& loop, Ec2& ec2, const driver::ImageUploadParameters& upload,
                                const UploadMarks& marks, const Snapshot& snapshot);

// Ends when machines can be made of the image. Error(kFail): that will never be.
Task<> AwaitAvailable(Loop& loop, Ec2& ec2, std::string id);

// Deregisters an image; one that does not exist is success.
Task<> DeregisterImage(Ec2& ec2, std::string id);

}  // namespace nodepool::drivers::aws
