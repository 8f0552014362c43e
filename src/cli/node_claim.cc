#include "cli/node_claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <utility>

#include "async/cleanup.h"
#include "async/task_group.h"
#include "base/text.h"
#include "sched/requests/offered_labels.h"

namespace nodepool::cli {

std::string BootingText(std::size_t ready, std::size_t wanted) {
  return fmt::format("booting, {} of {} ready", ready, wanted);
}

std::string WaitingText(std::string begin, std::string waits) {
  return waits.empty() ? std::move(begin) : begin + "; " + Visible(waits);
}

namespace {

std::string FaultOfProvider(const ProviderName& wanted, const std::vector<Component>& pools) {
  std::set<std::string> served;
  for (const Component& pool : pools) served.insert(pool.provider_name.value);
  if (served.empty() || served.contains(wanted.value)) return "";
  std::optional<std::string> nearest = NearestSpelling(wanted.value, {served.begin(), served.end()});
  return fmt::format("no launcher serves provider {}{}", Excerpt(wanted.value),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

}  // namespace

Task<std::string> FaultOfWish(Context& context, NodeWish wish) {
  std::vector<Component> pools = co_await context.store.components.List(ComponentKind::kPool);
  std::vector<Component> launchers = co_await context.store.components.List(ComponentKind::kLauncher);
  if (!wish.provider.empty()) {
    std::string fault = FaultOfProvider(wish.provider, pools);
    if (!fault.empty()) co_return fault;
  }
  std::vector<const Component*> components;
  for (const Component& component : pools) components.push_back(&component);
  for (const Component& component : launchers) components.push_back(&component);
  co_return sched::FaultOfLabels(wish.labels, components);
}

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
