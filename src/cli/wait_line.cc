#include "cli/wait_line.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "async/cleanup.h"
#include "async/task_group.h"

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

// Keeps a line current until it is cancelled, and removes it then.
Task<> ShowWaitLine(Console& console, NodeClaim& claim, std::ostream& terminal) {
  auto remove = [&terminal] { return RemoveLine(terminal); };
  co_await WithCleanup(Rewrite(console, claim, terminal), remove);
}

// Most requests are served before the first question.
constexpr Duration kQuestionPause = std::chrono::seconds(5);
constexpr Duration kReasonPause = std::chrono::minutes(1);

Task<> LogWhy(Console& console, NodeClaim& claim) {
  std::string logged;
  while (true) {
    co_await console.loop.SleepFor(kQuestionPause);
    co_await claim.AskForProgress();
    std::string why = claim.WhyWaiting();
    if (why.empty() || why == logged) continue;
    console.logger.Info("Waiting: {}", why);
    logged = std::move(why);
    co_await console.loop.SleepFor(kReasonPause - kQuestionPause);
  }
}

}  // namespace

Task<> ObtainShowingWhy(Console& console, NodeClaim& claim) {
  TaskGroup showing(console.loop, console.logger);
  if (console.progress != nullptr) {
    showing.Spawn("why the request waits", ShowWaitLine(console, claim, *console.progress));
  } else {
    showing.Spawn("why the request waits", LogWhy(console, claim));
  }
  auto stop = [&showing] { return showing.Stop(); };
  co_await WithCleanup(claim.Obtain(), stop);
}

}  // namespace nodepool::cli
