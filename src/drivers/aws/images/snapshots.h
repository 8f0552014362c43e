#pragma once

#include <map>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "drivers/aws/api/ec2.h"

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

}  // namespace nodepool::drivers::aws
