#pragma once

#include <string>
#include <string_view>

#include "driver/cloud/adapter.h"

namespace nodepool::driver::cloud {

// What a node's comment says of its launch: which kind of machine it is, where, why, and what it costs per
// hour; empty if there was no choice and the price is not known. `choice`: the candidate and why it was
// chosen; empty: there were none.
//
//   Launched as m5.large in b; no capacity for m6i.large in b until 12:03 UTC; 0.096 per hour
std::string LaunchComment(const Instance& instance, const std::string& choice);

// Whether a comment is of this kind, so that the launcher may replace it; another one is its author's.
bool IsLaunchComment(std::string_view comment);

}  // namespace nodepool::driver::cloud
