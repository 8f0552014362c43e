#pragma once

#include "model/node.h"
#include "model/node_request.h"

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

}  // namespace nodepool::cli
