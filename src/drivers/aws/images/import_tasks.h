#pragma once

#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "drivers/aws/api/ec2.h"
#include "drivers/aws/config/aws_config.h"

namespace nodepool::drivers::aws {

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

}  // namespace nodepool::drivers::aws
