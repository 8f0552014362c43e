#pragma once

#include <map>
#include <string>

#include "driver/provider_config.h"
#include "sched/requests/question.h"

namespace nodepool::launcher {

// What a pool is, for the words about its decisions.
struct PoolFacts {
  const sched::PoolView& view;
  const driver::PoolConfig& config;
  const std::map<LabelName, std::string>& faults;  // why labels cannot be launched
};

// The setting that limits the resource in a pool or for a tenant: "max-servers".
std::string SettingOf(const std::string& resource);

// Why the pool declines the request, in words and with the names and amounts involved: "it has no label smal;
// did you mean small?", "6 instances needed, the pool's max-servers is 5".
std::string DeclineText(const PoolFacts& pool, const NodeRequest& request, const sched::Decision& decision);

}  // namespace nodepool::launcher
