#pragma once

#include <deque>
#include <set>
#include <string>
#include <utility>

#include "async/loop.h"

namespace nodepool::drivers::aws {

// The instances made here in the last five minutes: EC2 may not know them everywhere yet (driver-aws.md 18).
class RecentInstances {
 public:
  explicit RecentInstances(Loop& loop) : loop_(loop) {}

  void Add(const std::string& id);
  bool Contains(const std::string& id);

 private:
  void DropOld();

  Loop& loop_;
  std::deque<std::pair<SteadyTime, std::string>> in_order_;
  std::set<std::string> ids_;
};

}  // namespace nodepool::drivers::aws
