#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "driver/cloud/images/image_file.h"
#include "drivers/aws/api/ebs.h"
#include "drivers/aws/api/ec2.h"
#include "drivers/aws/images/own_images.h"

namespace nodepool::drivers::aws {

using driver::cloud::ImageFile;

// Writes the file into a snapshot block by block (driver-aws.md 15.5), without the blocks of zeros, and ends
// when the snapshot is completed. What a failure leaves has the tags. `passed` is called with the number of
// bytes that are written or known to be zeros.
Task<Snapshot> WriteSnapshot(Loop& loop, BlockingPool& pool, log::Logger logger, Ebs& ebs, Ec2& ec2,
                             std::shared_ptr<const ImageFile> file, std::map<std::string, std::string> tags,
                             std::string token, std::function<void(std::uint64_t)> passed);

// The next block of the file in [place, end) that is not all zeros.
struct Block {
  int index = 0;
  Content content;  // a whole block: what is beyond the file's end are zeros
};
std::optional<Block> FindBlock(const ImageFile& file, std::uint64_t place, std::uint64_t end, int block_size);

}  // namespace nodepool::drivers::aws
