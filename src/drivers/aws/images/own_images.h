#pragma once

#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "driver/cloud/images/upload_marks.h"
#include "drivers/aws/api/ec2.h"
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

}  // namespace nodepool::drivers::aws
