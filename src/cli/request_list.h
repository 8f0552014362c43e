#pragma once

#include "cli/command.h"

namespace nodepool::cli {

enum class RequestColumns {
  kBrief,   // those of operations.md 5.4
  kDetail,  // also age, tenant and, asked of the launchers, why the request waits
};

// `nodepool request-list [--detail] [--json]`: every request, by id.
Task<int> RequestList(Context& context, RequestColumns columns, Output output);

}  // namespace nodepool::cli
