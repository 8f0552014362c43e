#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "sim/world.h"

namespace nodepool::sim {

// Runs one seed silently.
Outcome Simulate(std::uint64_t seed);

// Runs one seed and prints every event of it, the launchers' log lines included.
Outcome Narrate(std::uint64_t seed, std::ostream& out);

struct Batch {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
};
struct BatchResult {
  std::uint64_t seeds = 0;
  std::uint64_t failures = 0;
  Consumer::Tally tally;
  int crashes = 0;
  double seconds = 0;  // real time
};
// Runs a batch; for every failing seed prints the violation, the events of the records involved, and how to
// replay it. Gives up after `max_failures`.
BatchResult RunBatch(Batch batch, std::uint64_t max_failures, std::ostream& out);

}  // namespace nodepool::sim
