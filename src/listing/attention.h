#pragma once

#include <string>
#include <vector>

#include "listing/status_records.h"

namespace nodepool::listing {

// What an operator should look at, what concerns most first; empty when all is well. Sentences of one line.
std::vector<std::string> FindTroubles(const StatusRecords& records);

}  // namespace nodepool::listing
