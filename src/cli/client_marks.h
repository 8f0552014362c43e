#pragma once

#include "model/node.h"
#include "model/node_request.h"

namespace nodepool::cli {

// How `nodepool request` and `nodepool release` know their own things again. Both
// marks live in fields that belong to the client and that nobody else interprets: a
// request's `requestor_data`, {"tool": "nodepool request"}, and a node's `user_data`,
// {"nodepool_request": "<request id>", "release": <bool>}.

void MarkRequest(NodeRequest& request);
bool IsMarked(const NodeRequest& request);

void MarkNode(Node& node, const RequestId& request);
bool IsMarked(const Node& node);

// What `release` asks for elsewhere: that the holder gives the node back. Written
// without the node's lock, which the holder has; only our own mark is touched.
// Requires a marked node.
void AskForRelease(Node& node);
bool IsReleaseRequested(const Node& node);

}  // namespace nodepool::cli
