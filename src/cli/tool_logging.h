#pragma once

#include "cli/invocation.h"

namespace nodepool::cli {

// Configures where messages go, and their format (operations.md 5.1). Error(kInvalid), beginning with the
// file name, if the logging file cannot be used; the default logging then stays in force.
void SetUpLogging(const Invocation& invocation);

}  // namespace nodepool::cli
