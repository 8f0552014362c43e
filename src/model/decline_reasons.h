#pragma once

#include <string>
#include <vector>

#include "model/node_request.h"

namespace nodepool {

// Why pools have declined a request, in words, one text for each decline: "fake-cloud main: it has no label
// smal". The key `decline_reasons` of its record (coordination.md 4.3), which only requests have that were
// declined, and which a Python launcher's next write removes.
std::vector<std::string> DeclineReasons(const NodeRequest& request);

// Why a failed request failed, in one text. A Python launcher writes no reasons.
std::string WhyFailed(const NodeRequest& request);

// Adds a reason, in one line and shortened; one that is there already, or that is empty, is not added. Of
// very many reasons the oldest are kept.
void AddDeclineReason(NodeRequest& request, const std::string& reason);

}  // namespace nodepool
