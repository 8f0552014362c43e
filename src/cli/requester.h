#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace nodepool::cli {

struct RequestOptions {
  std::vector<LabelName> labels;  // at least one; in the order of the nodes
  bool wait = false;
  std::optional<Duration> hold_for;  // none: until interrupted or released
  int priority = 200;                // 0 to 999; smaller is served first
  std::optional<std::string> tenant;
  std::string requestor = "nodepool";
  ProviderName provider;  // preferred; empty: none
  Output output = Output::kTable;
};

// `nodepool request LABEL...`: asks for nodes as any client does (coordination.md 12.1).
//
// Without `wait` the request is persistent, its id is printed and that is all: the
// nodes stay allocated to it until `nodepool release` is called.
//
// With `wait` it is ephemeral. Once it is fulfilled every node is locked (all or
// none), the request deleted, the nodes set in-use and printed, and kept until
// `hold_for` has passed, a `nodepool release` asks for them or the task is cancelled;
// then they are set used and unlocked. Status 1 when no nodes were got, at once and without a
// request when no registered pool offers one of the labels; without `wait` that is a warning.
Task<int> Request(Context& context, RequestOptions options);

}  // namespace nodepool::cli
