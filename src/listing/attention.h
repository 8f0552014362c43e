#pragma once

#include <string>
#include <vector>

#include "listing/status_records.h"

namespace nodepool::listing {

// What an operator should check, the most urgent first; empty if there are no problems. Each is one line.
std::vector<std::string> FindTroubles(const StatusRecords& records);

}  // namespace nodepool::listing
