#include "cli/wait_line.h"

#include <fmt/format.h>

#include "async/cleanup.h"

namespace nodepool::cli {
namespace {

constexpr Duration kStep = std::chrono::seconds(1);
// It is asked each time that so many steps have passed.
constexpr int kStepsPerQuestion = 3;

Task<> RemoveLine(std::ostream& terminal) {
  terminal << "\r\x1b[K" << std::flush;
  co_return;
}

Task<> Rewrite(Console& console, NodeClaim& claim, std::ostream& terminal) {
  SteadyTime started = console.loop.SteadyNow();
  for (int step = 0;; ++step) {
    if (step % kStepsPerQuestion == 1) co_await claim.AskForProgress();
    std::chrono::duration<double> passed = console.loop.SteadyNow() - started;
    std::string line = fmt::format("{:.0f} s: {}", passed.count(), claim.Progress());
    if (std::optional<std::size_t> width = console.terminal_width(); width && line.size() >= *width) {
      line.resize(*width > 0 ? *width - 1 : 0);
    }
    terminal << "\r\x1b[K" << line << std::flush;
    co_await console.loop.SleepFor(kStep);
  }
}

}  // namespace

Task<> ShowWaitLine(Console& console, NodeClaim& claim, std::ostream& terminal) {
  auto remove = [&terminal] { return RemoveLine(terminal); };
  co_await WithCleanup(Rewrite(console, claim, terminal), remove);
}

}  // namespace nodepool::cli
