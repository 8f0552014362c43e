#pragma once

#include "model/node.h"
#include "model/node_request.h"

namespace nodepool::cli {

// How `nodepool request` and `nodepool release` know their own things again. Both
// marks are in fields that belong to the client and that nobody else interprets: a
// request's `requestor_data`, {"tool": "nodepool request", "user": "alice@host"}, and a node's
// `user_data`, {"nodepool_request": "<request id>", "user": "alice@host", "release": <bool>}.
// Marks of old versions name no user.

void MarkRequest(NodeRequest& request, const std::string& user);
bool IsMarked(const NodeRequest& request);
bool IsMarkedBy(const NodeRequest& request, const std::string& user);

void MarkNode(Node& node, const RequestId& request, const std::string& user);
bool IsMarked(const Node& node);
bool IsMarkedBy(const Node& node, const std::string& user);

// What `release` asks for elsewhere: that the holder gives the node back. Written
// without the node's lock, which the holder has; only our own mark is touched.
// Requires a marked node.
void AskForRelease(Node& node);
bool IsReleaseRequested(const Node& node);

}  // namespace nodepool::cli
