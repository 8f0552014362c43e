#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "driver/cloud/images/image_file.h"
#include "drivers/aws/api/s3.h"

namespace nodepool::drivers::aws {

using driver::cloud::ImageFile;

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
               std::shared_ptr<const ImageFile> file, std::string key,
               std::map<std::string, std::string> tags, std::function<void(std::uint64_t)> sent);

// The object and every upload in parts with its key.
Task<> RemoveObject(S3& s3, std::string key);

}  // namespace nodepool::drivers::aws
