#include "debug/watchdog.h"

#include <fmt/chrono.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>

namespace nodepool::debug {

namespace {

constexpr std::string_view kBuiltInDrivers = "nodepool::drivers::";

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// Whether no other watchdog has noticed the pause, which was between these times.
bool IsFirstToNotice(SteadyTime before, SteadyTime after) {
  static std::atomic<SteadyTime> last_end{SteadyTime()};
  return last_end.exchange(after) < before;
}

}  // namespace

Watchdog::Watchdog(Watched watched, Owners owners, Limits limits)
    : watched_(std::move(watched)), owners_(std::move(owners)), limits_(limits) {
  boost::asio::post(watched_.loop.context(), [this] {
    loop_thread_ = gettid();
    Beat();
  });
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "watchdog");
}

Watchdog::~Watchdog() {
  watched_.loop.clock().CancelTimer(timer_);
  ending_.release();
  thread_.join();
}

void Watchdog::Beat() {
  ++beats_;
  Loop& loop = watched_.loop;
  timer_ = loop.clock().CallAt(loop.SteadyNow() + limits_.first / 4, [this] { Beat(); });
}

void Watchdog::Run() {
  auto now = [] { return std::chrono::steady_clock::now(); };
  std::uint64_t seen = beats_;
  auto last_beat = now();
  Duration next_report = limits_.first;
  SteadyTime asleep = now();
  for (; !ending_.try_acquire_for(limits_.first / 4); asleep = now()) {
    // This thread overslept as well: the whole process did not run, and the loop is not to blame.
    if (Duration pause = now() - asleep; pause >= limits_.first) {
      if (IsFirstToNotice(asleep, now())) {
        logger_.Warning(
            "This process did not run for about {:.0f} s: it was stopped, or the machine was suspended or "
            "overloaded",
            Seconds(pause));
      }
      last_beat = now();
      continue;
    }
    Duration silence = now() - last_beat;
    if (std::uint64_t beats = beats_; beats != seen) {
      if (next_report != limits_.first)
        logger_.Warning("{} turns again; it was blocked for about {:.0f} s", watched_.name, Seconds(silence));
      seen = beats;
      last_beat = now();
      next_report = limits_.first;
    } else if (loop_thread_ != 0 && silence >= next_report) {
      Report(silence);
      next_report = silence + limits_.again;
    }
  }
}

void Watchdog::Report(Duration silence) {
  ThreadStack stack = StackOf(loop_thread_);
  std::string suspect = SuspectIn(stack, owners_);
  logger_.Error("{} has been blocked for {:.0f} s by {}; {} waits. It runs:\n{}", watched_.name,
                Seconds(silence), suspect.empty() ? "what the stack shows" : suspect, watched_.who_waits,
                ToText({stack}));
}

std::string SuspectIn(const ThreadStack& stack, const Watchdog::Owners& owners) {
  for (std::size_t i = stack.frames.size(); i-- > 0;) {
    auto owner = owners.find(stack.modules[i]);
    if (owner != owners.end()) return fmt::format("driver {} ({})", owner->second, owner->first);
    if (stack.frames[i].find(kBuiltInDrivers) != std::string::npos) return stack.frames[i];
  }
  return "";
}

}  // namespace nodepool::debug
