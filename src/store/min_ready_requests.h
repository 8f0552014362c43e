#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "model/node_request.h"
#include "store/tree.h"

namespace nodepool::store {

// How launchers make their min-ready requests (launcher.md 14): in transactions that exclude each other, so
// that each is based on records that show what the others have requested. A Python launcher knows nothing of
// this.
class MinReadyRequests {
 public:
  explicit MinReadyRequests(Tree& tree) : tree_(tree) {}

  // The number of such transactions so far. Read it before the records that say what is missing.
  Task<std::int32_t> Version();
  // Makes ephemeral requests. nullopt: launchers have made some since `seen_version`, so read the records and
  // decide again; this includes requests of this call whose answer was lost.
  Task<std::optional<std::vector<RequestId>>> Create(std::vector<NodeRequest> requests,
                                                     std::int32_t seen_version);

 private:
  Tree& tree_;
};

}  // namespace nodepool::store
