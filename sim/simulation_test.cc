#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "base/logging.h"
#include "sim/simulate.h"

namespace nodepool::sim {
namespace {

// Set NODEPOOL_SIMULATION_SEEDS for more than a build runs by itself.
std::uint64_t SeedCount() {
  const char* wish = std::getenv("NODEPOOL_SIMULATION_SEEDS");
  return wish != nullptr ? std::strtoull(wish, nullptr, 10) : NODEPOOL_SIMULATION_SEEDS;
}

void ExpectGood(Batch batch) {
  log::ToFile("/dev/null");
  std::ostringstream story;
  BatchResult result = RunBatch(batch, 5, story);
  EXPECT_EQ(result.failures, 0u) << story.str();
  std::printf("%.1f seeds per second\n", static_cast<double>(result.seeds) / result.seconds);
}

// Two halves, so that two cores are used.
TEST(LauncherSimulation, FirstHalf) { ExpectGood({1, SeedCount() / 2}); }
TEST(LauncherSimulation, SecondHalf) { ExpectGood({1 + SeedCount() / 2, SeedCount() - SeedCount() / 2}); }

// Without this no failing seed could be looked into.
TEST(LauncherSimulation, SeedReplaysExactly) {
  for (std::uint64_t seed : {3, 4, 5, 6}) {
    std::ostringstream first, second;
    Narrate(seed, first);
    Narrate(seed, second);
    EXPECT_EQ(first.str(), second.str());
    EXPECT_GT(first.str().size(), 1000u);
  }
}

}  // namespace
}  // namespace nodepool::sim
