#include "async/loop.h"

#include <pthread.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "async/event.h"
#include "async/task_group.h"
#include "base/scope_exit.h"

namespace nodepool {

AwaitNote::AwaitNote(const boost::asio::any_io_executor& executor, std::string_view what,
                     std::string_view about, std::optional<SteadyTime> until)
    : what_(what), about_(about), until_(until) {
  using Executor = TaskExecutor<boost::asio::io_context::executor_type>;
  if (const auto* own = executor.target<Executor>()) own->task()->awaits.push_back(*this);
}

Clock::TimerId SystemClock::CallAt(SteadyTime when, std::move_only_function<void()> callback) {
  TimerId id = queue_.Add(when, std::move(callback));
  Arm();
  return id;
}

bool SystemClock::CancelTimer(TimerId id) {
  bool removed = queue_.Remove(id);
  if (removed && queue_.empty()) {
    // An armed timer would keep the loop alive with nothing left to do.
    armed_for_ = SteadyTime::max();
    timer_.cancel();
  }
  return removed;
}

void SystemClock::Arm() {
  if (queue_.empty() || queue_.earliest() >= armed_for_) return;
  armed_for_ = queue_.earliest();
  timer_.expires_at(std::chrono::time_point_cast<std::chrono::steady_clock::duration>(armed_for_));
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) RunDue();
  });
}

void SystemClock::RunDue() {
  armed_for_ = SteadyTime::max();
  SteadyTime now = SteadyNow();
  while (!queue_.empty() && queue_.earliest() <= now) queue_.PopEarliest()();
  Arm();
}

Loop::Loop() : own_clock_(std::make_unique<SystemClock>(context_)), clock_(own_clock_.get()) {}

Loop::Loop(Clock& clock) : clock_(&clock) {}

Loop::~Loop() = default;

Task<> Loop::SleepUntil(SteadyTime when) {
  auto executor = co_await boost::asio::this_coro::executor;
  AwaitNote note(executor, "a timer", {}, when);
  co_await Elapse(when);
}

Task<> Loop::Elapse(SteadyTime when) {
  WaitList due;
  Clock* clock = clock_;
  Clock::TimerId id = clock->CallAt(when, [&due] { due.NotifyAll(); });
  ScopeExit cancel([clock, id] { clock->CancelTimer(id); });
  co_await due.Wait();
}

Task<> Loop::SleepFor(Duration duration) { return SleepUntil(SteadyNow() + duration); }

Task<> Loop::GiveWay() { co_await boost::asio::post(context_, boost::asio::use_awaitable); }

void Loop::Run() {
  context_.restart();
  context_.run();
}

void Loop::Stop() { context_.stop(); }

LoopThread::LoopThread(const std::string& name)
    : work_(loop_.context().get_executor()), thread_([this] { loop_.Run(); }) {
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

void LoopThread::End() {
  if (!thread_.joinable()) return;
  // Not from here: a thread that has not begun to run the loop would miss it.
  boost::asio::post(loop_.context(), [this] { loop_.Stop(); });
  thread_.join();
}

}  // namespace nodepool
