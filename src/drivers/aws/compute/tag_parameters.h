#pragma once

#include <map>
#include <string>
#include <vector>

#include "drivers/aws/api/query.h"

namespace nodepool::drivers::aws {

// The tags of what a call makes: the same for each kind of resource, such as "instance" and "volume".
void AddTagSpecifications(const std::vector<std::string>& resources,
                          const std::map<std::string, std::string>& tags, Query& query);

}  // namespace nodepool::drivers::aws
