#pragma once

#include "cli/invocation.h"

namespace nodepool::cli {

// Where messages go, and how they look (operations.md 5.1). Error(kInvalid) that begins with the file: the
// logging file cannot be used; then messages go where they go without one.
void SetUpLogging(const Invocation& invocation);

}  // namespace nodepool::cli
