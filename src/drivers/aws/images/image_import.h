#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "async/task_group.h"
#include "driver/cloud/images/image_file.h"
#include "driver/cloud/images/staged_images.h"
#include "drivers/aws/api/ebs.h"
#include "drivers/aws/api/s3.h"
#include "drivers/aws/api/services.h"
#include "drivers/aws/compute/disks.h"
#include "drivers/aws/config/aws_config.h"

namespace nodepool::drivers::aws {

using driver::cloud::IsKeyOf;
using driver::cloud::MarksOf;
using driver::cloud::ReadUnfinishedId;
using driver::cloud::UnfinishedId;
using driver::cloud::UploadMarks;

// The upload's metadata as EC2's tags, cut to what AWS permits.
std::map<std::string, std::string> TagsOf(const driver::ImageUploadParameters& upload);
// The same for an object in S3, which has at most ten, of fewer characters; where they do not fit, only those
// that show whose it is.
std::map<std::string, std::string> ObjectTags(const std::map<std::string, std::string>& tags);

// What AWS makes of an object in S3.
enum class ImportKind { kSnapshot, kImage };

// AWS's work on an object in S3 (driver-aws.md 15.2, 15.4).
struct ImportTask {
  std::string id;
  std::string status;   // "active", "deleting", "deleted", "completed"
  std::string message;  // what it does, or why it failed
  int percent = 0;
  std::string image;     // what it has made; empty: not known yet, or none
  std::string snapshot;  // the first, likewise
  std::map<std::string, std::string> tags;

  bool is_completed() const { return status == "completed"; }
  // It makes nothing any more. While it is `deleting` it has failed already.
  bool has_ended() const { return is_completed() || status == "deleting" || status == "deleted"; }
};

std::vector<ImportTask> ReadSnapshotTasks(const pugi::xml_node& root);
std::vector<ImportTask> ReadImageTasks(const pugi::xml_node& root);

// What to import.
struct ImportOrder {
  std::string bucket;
  std::string key;
  std::string format;  // of the object
  std::string architecture;
  std::map<std::string, std::string> tags;  // of the task
  std::string token;
};

// Returns the task's id.
Task<std::string> BeginImport(Ec2& ec2, ImportKind kind, const ImportOrder& order);
// All of the account that EC2 still shows; with an id only that one, and none if there is no such task.
Task<std::vector<ImportTask>> ListImportTasks(Ec2& ec2, ImportKind kind, std::string id = "");

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
