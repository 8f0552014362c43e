#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "async/task_group.h"
#include "driver/cloud/images/image_file.h"
#include "drivers/aws/api/ebs.h"
#include "drivers/aws/api/ec2.h"
#include "drivers/aws/api/s3.h"
#include "drivers/aws/images/own_images.h"

namespace nodepool::drivers::aws {

// Runs `count` tasks that make() returns, at the same time. The first that fails cancels the others; its
// error is thrown when all have ended. Everything that `make` refers to outlives the call.
Task<> RunWorkers(Loop& loop, log::Logger logger, std::string name, int count, std::function<Task<>()> make);

// How a file is cut: parts of `size` bytes, of which `at_a_time` are sent at the same time and kept in
// memory.
struct PartPlan {
  std::uint64_t size = 0;
  int count = 0;  // 1: the file is sent as a whole
  int at_a_time = 0;
};
// S3 takes 10,000 parts of at least 5 MiB.
PartPlan PlanParts(std::uint64_t file_size);

// Makes an object of the file (driver-aws.md 5.4, 15.1). What a failure leaves is removed by RemoveObject.
// `sent` is called with the number of bytes that S3 has.
Task<> PutFile(Loop& loop, BlockingPool& pool, log::Logger logger, S3& s3,
               std::shared_ptr<const SparseFile> file, std::string key,
               std::map<std::string, std::string> tags, std::function<void(std::uint64_t)> sent);

// The object and every upload in parts with its key.
Task<> RemoveObject(S3& s3, std::string key);

// Writes the file into a snapshot block by block (driver-aws.md 15.5), without the blocks of zeros, and ends
// when the snapshot is completed. What a failure leaves has the tags. `passed` is called with the number of
// bytes that are written or known to be zeros.
Task<Snapshot> WriteSnapshot(Loop& loop, BlockingPool& pool, log::Logger logger, Ebs& ebs, Ec2& ec2,
                             std::shared_ptr<const SparseFile> file, std::map<std::string, std::string> tags,
                             std::string token, std::function<void(std::uint64_t)> passed);

// The next block of the file in [place, end) that is not all zeros.
struct Block {
  int index = 0;
  Content content;  // a whole block: what is beyond the file's end are zeros
};
std::optional<Block> FindBlock(const SparseFile& file, std::uint64_t place, std::uint64_t end,
                               int block_size);

}  // namespace nodepool::drivers::aws
