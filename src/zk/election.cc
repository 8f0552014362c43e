#include "zk/election.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>

#include "async/backoff.h"
#include "async/shield.h"
#include "base/error.h"
#include "base/logging.h"

namespace nodepool::zk {
namespace {

namespace asio = boost::asio;

constexpr Duration kReelectionPause = std::chrono::seconds(5);

// Runs `task` until it ends or `stop` is set, which cancels it. Gives the task's
// error; cancelling the caller cancels the task.
Task<std::exception_ptr> RunUntil(std::shared_ptr<Event> stop, Task<> task) {
  auto executor = co_await asio::this_coro::executor;
  auto outcome = co_await asio::experimental::make_parallel_group(
                     asio::co_spawn(executor, std::move(task), asio::deferred),
                     asio::co_spawn(executor, stop->Wait(), asio::deferred))
                     .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  std::exception_ptr error = std::get<1>(outcome);
  co_return error;
}

}  // namespace

Task<> Election::Run(std::function<Task<>()> lead) {
  for (;;) {
    HeldLock lock = co_await Win();
    bool is_over = co_await Reign(std::move(lock), lead());
    if (is_over) co_return;
  }
}

Task<> Election::RunForEver(std::function<Task<>()> lead, std::string what, log::Logger logger) {
  for (;;) {
    std::exception_ptr error;
    try {
      co_await Run(lead);
    } catch (...) {
      error = std::current_exception();
    }
    if (error && VerdictOf(error) == Verdict::kCancelled) std::rethrow_exception(error);
    if (error) logger.Error("{} failed, another may take over: {}", what, MessageOf(error));
    co_await loop_.SleepFor(kReelectionPause);
  }
}

// Stands in line until it leads.
Task<HeldLock> Election::Win() {
  Backoff backoff({}, random_);
  for (;;) {
    std::exception_ptr fault;
    try {
      co_await EnsurePath(client_, ParentPath(directory_));
      std::optional<HeldLock> lock = co_await locker_.Acquire(directory_, SteadyTime::max(), identifier_);
      if (lock && locker_.IsHeld(*lock)) co_return std::move(*lock);
    } catch (...) {
      fault = std::current_exception();
    }
    bool is_hopeless =
        client_.state() == SessionState::kClosed || (fault && VerdictOf(fault) == Verdict::kCancelled);
    if (fault && is_hopeless) std::rethrow_exception(fault);
    if (fault) log::Logger("nodepool.zk.election").Debug("Standing for {}: {}", directory_, MessageOf(fault));
    co_await loop_.SleepFor(backoff.Next());
  }
}

// Leads. False: the session was lost, and with it the leadership.
Task<bool> Election::Reign(HeldLock lock, Task<> lead) {
  auto deposed = std::make_shared<Event>("the end of the office");
  Subscription on_session = client_.OnSession([this, deposed, lock](SessionState) {
    if (!locker_.IsHeld(lock)) deposed->Set();
  });
  is_leader_ = true;
  std::exception_ptr error = co_await RunUntil(deposed, std::move(lead));
  is_leader_ = false;
  if (deposed->is_set()) {
    bool was_deposed =
        !error || VerdictOf(error) == Verdict::kCancelled || VerdictOf(error) == Verdict::kLostSession;
    if (was_deposed && client_.state() != SessionState::kClosed) co_return false;
  }
  co_await StayAwake();
  co_await Shielded(locker_.Release(std::move(lock)));
  if (error) std::rethrow_exception(error);
  co_return true;
}

}  // namespace nodepool::zk
