#pragma once

#include <string>
#include <vector>

#include "model/component.h"
#include "store/tree.h"

namespace nodepool::store {

// The processes that are registered in the tree.
class Components {
 public:
  explicit Components(Tree& tree) : tree_(tree) {}

  // All registered, readable components of the kind, read from ZooKeeper.
  Task<std::vector<Component>> List(ComponentKind kind);

  // The election of the process that reports the cluster's statistics, at
  // /nodepool/elections/stats (launcher.md 27.3); `identifier` is "<hostname>-<pid>".
  zk::Election StatsElection(std::string identifier);

 private:
  Tree& tree_;
};

}  // namespace nodepool::store
