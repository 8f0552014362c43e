#pragma once

#include <functional>

#include "model/node_request.h"

namespace nodepool::sched {

// What the keeper does next about a lease that is not expired (http-requests.md 1.2).
enum class LeaseStep {
  kNone,         // wait for a change
  kNoteRequest,  // its request's id is not noted: find the request
  kTake,         // its request is fulfilled: take the nodes
  kFail,         // its request has failed, or is gone
  kDropNodes,    // it has lost nodes
  kEnd,          // its client does not need it any more
};

// `request` is the one that the lease names, null for none. `node` returns a node's record, null for none.
LeaseStep NextStep(const Lease& lease, const NodeRequest* request,
                   const std::function<const Node*(const NodeId&)>& node);

}  // namespace nodepool::sched
