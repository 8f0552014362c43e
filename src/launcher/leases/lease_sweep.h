#pragma once

#include <functional>

#include "launcher/context.h"

namespace nodepool::launcher {

// Finds, now and every minute, what no event announces: frees nodes and deletes requests whose lease is gone,
// and calls `drop` for each lease one of whose nodes is locked by another process. Runs until it is
// cancelled.
Task<> SweepLeases(Context& context, log::Logger logger, std::function<void(const LeaseId&)> drop);

}  // namespace nodepool::launcher
