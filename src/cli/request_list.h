#pragma once

#include "cli/command.h"

namespace nodepool::cli {

// `nodepool request-list [--json]`: every request, by id (operations.md 5.4).
Task<int> RequestList(Context& context, Output output);

}  // namespace nodepool::cli
