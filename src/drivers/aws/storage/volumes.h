#pragma once

#include <map>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "drivers/aws/api/ec2.h"

namespace nodepool::drivers::aws {

struct Volume {
  std::string id;
  std::map<std::string, std::string> tags;
  std::string instance = "";  // that it is attached to; empty: none
  std::string type = "";
  double size = 0;  // GiB
  double iops = 0;
};

std::vector<Volume> ReadVolumes(const pugi::xml_node& root);

// The provider's volumes that no instance uses; the others are deleted with their instances.
Task<std::vector<Volume>> ListUnusedVolumes(Ec2& ec2, std::string provider);

// All of the account.
Task<std::vector<Volume>> ListAllVolumes(Ec2& ec2);

// One that does not exist is success.
Task<> DeleteVolume(Ec2& ec2, std::string id);

}  // namespace nodepool::drivers::aws
