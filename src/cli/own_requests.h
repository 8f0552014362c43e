#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/command.h"
#include "store/cache/node_cache.h"

namespace nodepool::cli {

// What one `nodepool request` of a user has, by its marks (client_marks.h).
struct OwnRequest {
  RequestId id;
  bool is_there = false;  // its record; a command that waits removes it once it has the nodes
  std::string state;      // of the request, else of its nodes
  std::set<LabelName> labels;
  std::set<NodeId> nodes;
  WallTime since{};
};

// All of `context.user`, those with records first, by id. `nodes` is complete.
Task<std::vector<OwnRequest>> OwnRequests(Context& context, const store::NodeCache& nodes);

listing::Listing ListOwnRequests(const std::vector<OwnRequest>& requests);

}  // namespace nodepool::cli
