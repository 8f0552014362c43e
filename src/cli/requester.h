#pragma once

#include <optional>

#include "cli/command.h"
#include "cli/node_claim.h"

namespace nodepool::cli {

struct RequestOptions {
  NodeWish wish;
  bool wait = false;
  std::optional<Duration> hold_for;  // none: until interrupted or released
  Output output = Output::kTable;
};

// `nodepool request LABEL...`: requests nodes as any client does (coordination.md 12.1).
//
// Without `wait` the request is persistent; the command prints its id and ends. The nodes stay allocated to
// it until `nodepool release` is called.
//
// With `wait` it is ephemeral. Once it is fulfilled, the command locks all nodes or none, deletes the
// request, sets the nodes in-use, prints them, and keeps them until `hold_for` has passed, a `nodepool
// release` asks for them or the task is cancelled; then it sets them used and unlocks them. Status 1 if it
// got no nodes. If no registered pool offers one of the labels, it fails at once without a request; without
// `wait` that is a warning.
Task<int> Request(Context& context, RequestOptions options);

}  // namespace nodepool::cli
