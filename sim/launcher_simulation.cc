// Simulates launchers, consumers and clouds from seeds; see CONTRIBUTING.md.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/log/logging.h"
#include "sim/world.h"

int main(int argc, char** argv) {
  using namespace nodepool;
  CLI::App app("Simulates launchers, consumers and clouds; checks what must and must never happen");
  std::optional<std::uint64_t> seed;
  sim::Batch batch{1, 2000};
  std::uint64_t max_failures = 10;
  app.add_option("--seed", seed, "Replay one seed and print all that happens");
  app.add_option("--first", batch.first, "First seed of a batch (1)");
  app.add_option("--count", batch.count, "Number of seeds of a batch (2000)");
  app.add_option("--max-failures", max_failures, "Failing seeds after which a batch gives up (10)");
  CLI11_PARSE(app, argc, argv);
  log::ToFile("/dev/null");
  if (seed) return sim::Narrate(*seed, std::cout).violation ? 1 : 0;
  sim::BatchResult result = sim::RunBatch(batch, max_failures, std::cout);
  std::cout << fmt::format(
      "{} seeds, {} failed; {:.1f} seeds/s; {} requests: {} fulfilled, {} failed, {} withdrawn; {} crashes\n",
      result.seeds, result.failures, static_cast<double>(result.seeds) / result.seconds,
      result.tally.submitted, result.tally.fulfilled, result.tally.failed, result.tally.withdrawn,
      result.crashes);
  return result.failures > 0 ? 1 : 0;
}
