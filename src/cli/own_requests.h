#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/command.h"
#include "model/node.h"
#include "model/node_request.h"
#include "store/cache/node_cache.h"

namespace nodepool::cli {

// How `nodepool request` and `nodepool release` recognize their own requests and nodes. Both marks are in
// fields that belong to the client and that Nodepool does not interpret: a request's `requestor_data`,
// {"tool": "nodepool request", "user": "alice@host"}, and a node's `user_data`, {"nodepool_request":
// "<request id>", "user": "alice@host", "release": <bool>}. Marks of old versions name no user.

void MarkRequest(NodeRequest& request, const std::string& user);
bool IsMarked(const NodeRequest& request);
bool IsMarkedBy(const NodeRequest& request, const std::string& user);

void MarkNode(Node& node, const RequestId& request, const std::string& user);
bool IsMarked(const Node& node);
bool IsMarkedBy(const Node& node, const std::string& user);
// The request that a marked node is for.
RequestId RequestIn(const Node& node);

// How `release` asks the holder, another process, to give the node back. Written without the node's lock,
// which the holder has; only our own mark is changed. Requires a marked node.
void AskForRelease(Node& node);
bool IsReleaseRequested(const Node& node);

// What one `nodepool request` of a user has, by its marks (own_requests.h).
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
