#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/log/logging.h"
#include "base/testing/test_environment.h"
#include "sim/world.h"

namespace nodepool::sim {
namespace {

// NODEPOOL_SIMULATION_SEEDS sets another number of seeds than the default.
std::uint64_t SeedCount() {
  const char* value = std::getenv("NODEPOOL_SIMULATION_SEEDS");
  if (value == nullptr) return NODEPOOL_SIMULATION_SEEDS;
  std::uint64_t count = 0;
  std::string_view text = value;
  auto [end, error] = std::from_chars(text.begin(), text.end(), count);
  if (error == std::errc() && end == text.end() && count >= 2) return count;
  throw std::invalid_argument("NODEPOOL_SIMULATION_SEEDS has to be a number from 2 on, not '" +
                              std::string(text) + "'");
}

void ExpectGood(Batch batch) {
  log::ToFile("/dev/null");
  std::ostringstream story;
  BatchResult result = RunBatch(batch, 5, story);
  EXPECT_EQ(result.failures, 0u) << story.str();
  // Simulations without events prove nothing.
  EXPECT_EQ(result.seeds, batch.count);
  EXPECT_GT(result.tally.fulfilled, 0);
  constexpr std::uint64_t kSomeCrash = 10;
  if (batch.count >= kSomeCrash) {
    EXPECT_GT(result.crashes, 0);
  }
  std::printf("%.1f seeds per second\n", static_cast<double>(result.seeds) / result.seconds);
}

// ctest runs each half in a process of its own.
TEST(LauncherSimulation, FirstHalf) { ExpectGood({1, SeedCount() / 2}); }
TEST(LauncherSimulation, SecondHalf) { ExpectGood({1 + SeedCount() / 2, SeedCount() - SeedCount() / 2}); }

// Otherwise failing seeds could not be analysed.
TEST(LauncherSimulation, SeedReplaysExactly) {
  for (std::uint64_t seed = 3; seed < testing::Often(7, 4); ++seed) {
    std::ostringstream first, second;
    Narrate(seed, first);
    Narrate(seed, second);
    EXPECT_EQ(first.str(), second.str());
    EXPECT_GT(first.str().size(), 1000u);
  }
}

}  // namespace
}  // namespace nodepool::sim
