#include "zk/recipes/election.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>

#include "async/backoff.h"
#include "async/cleanup.h"
#include "base/error.h"
#include "base/log/logging.h"

namespace nodepool::zk {
namespace {

namespace asio = boost::asio;

constexpr Duration kReelectionPause = std::chrono::seconds(5);

// Runs `task` until it ends or `stop` is set, which cancels it. Returns how the task
// ended; cancelling the caller cancels the task.
Task<Outcome<>> RunUntil(std::shared_ptr<Event> stop, Task<> task) {
  auto executor = co_await asio::this_coro::executor;
  auto outcome = co_await asio::experimental::make_parallel_group(
                     asio::co_spawn(executor, std::move(task), asio::deferred),
                     asio::co_spawn(executor, stop->Wait(), asio::deferred))
                     .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  auto& error = std::get<1>(outcome);
  if (!error) co_return Outcome<>();
  co_return std::unexpected(Failure(error));
}

}  // namespace

Task<> Election::Run(std::function<Task<>()> lead) {
  auto reign = [&](HeldLock& lock) { return Reign(lock, lead()); };
  auto resign = [&](HeldLock& lock) { return locker_.Release(lock); };
  bool is_over = false;
  while (!is_over) is_over = co_await Bracket(Win(), reign, resign);
}

Task<> Election::RunForEver(std::function<Task<>()> lead, std::string what, log::Logger logger) {
  for (;;) {
    Outcome<> led = co_await Attempt(Run(lead));
    if (!led) logger.Error("{} failed, another may take over: {}", what, led.error().message());
    co_await loop_.SleepFor(kReelectionPause);
  }
}

// Stands in line until it leads.
Task<HeldLock> Election::Win() {
  Backoff backoff({}, random_);
  for (;;) {
    Outcome<std::optional<HeldLock>> lock = co_await Attempt(Stand());
    if (lock && *lock && locker_.IsHeld(**lock)) co_return std::move(**lock);
    if (!lock) {
      if (client_.state() == SessionState::kClosed) lock.error().Rethrow();
      log::Logger("nodepool.zk.election").Debug("Standing for {}: {}", directory_, lock.error().message());
    }
    co_await loop_.SleepFor(backoff.Next());
  }
}

Task<std::optional<HeldLock>> Election::Stand() {
  co_await EnsurePath(client_, ParentPath(directory_));
  std::optional<HeldLock> lock = co_await locker_.Acquire(directory_, SteadyTime::max(), identifier_);
  co_return lock;
}

// Leads. False: the session was lost, and with it the leadership.
Task<bool> Election::Reign(HeldLock lock, Task<> lead) {
  auto deposed = std::make_shared<Event>("the end of the office");
  Subscription on_session = client_.OnSession([this, deposed, lock](SessionState) {
    if (!locker_.IsHeld(lock)) deposed->Set();
  });
  is_leader_ = true;
  Outcome<> led = co_await RunUntil(deposed, std::move(lead));
  is_leader_ = false;
  if (deposed->is_set() && client_.state() != SessionState::kClosed) {
    if (led || FailedWith(led, Verdict::kCancelled, Verdict::kLostSession)) co_return false;
  }
  if (!led) led.error().Rethrow();
  co_return true;
}

}  // namespace nodepool::zk
