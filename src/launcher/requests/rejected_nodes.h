#pragma once

#include <algorithm>
#include <map>
#include <set>

#include "async/loop.h"
#include "base/ids.h"

namespace nodepool::launcher {

// Free nodes that a request could not have; each is left alone for a while.
class RejectedNodes {
 public:
  RejectedNodes(const Loop& loop, Duration pause) : loop_(loop), pause_(pause) {}

  void Add(const NodeId& node) { until_[node] = loop_.SteadyNow() + pause_; }
  bool Contains(const NodeId& node) const {
    auto found = until_.find(node);
    return found != until_.end() && loop_.SteadyNow() < found->second;
  }

  // All of them now.
  std::set<NodeId> Current() {
    std::erase_if(until_, [this](const auto& entry) { return loop_.SteadyNow() >= entry.second; });
    std::set<NodeId> nodes;
    for (const auto& [node, until] : until_) nodes.insert(node);
    return nodes;
  }
  // When the next one may be tried again; SteadyTime::max(): there is none.
  SteadyTime NextEnd() const {
    SteadyTime next = SteadyTime::max();
    for (const auto& [node, until] : until_) next = std::min(next, until);
    return next;
  }

 private:
  const Loop& loop_;
  Duration pause_;
  std::map<NodeId, SteadyTime> until_;
};

}  // namespace nodepool::launcher
