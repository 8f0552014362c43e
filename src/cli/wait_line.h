#pragma once

#include <ostream>
#include <string>

#include "cli/node_claim.h"

namespace nodepool::cli {

// Why a claim has no nodes yet, as one line: how many requests are before it and what the launchers say, or
// how many of its nodes are ready. `waits` is the launchers' answer as text, often empty.
std::string WaitLine(const NodeClaim& claim, const std::string& waits, std::size_t wanted);

// Keeps that line current on a terminal until it is cancelled, and removes it then.
Task<> ShowWaitLine(Context& context, const NodeClaim& claim, std::size_t wanted, std::ostream& terminal);

}  // namespace nodepool::cli
