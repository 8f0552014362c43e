#pragma once

#include <functional>

#include "async/backoff.h"
#include "async/loop.h"
#include "async/shield.h"
#include "base/error.h"
#include "base/logging.h"
#include "base/random.h"

namespace nodepool::store {

// Awaits what `attempt` starts, again after a pause while it ends with kRetry: the
// connection was lost and nobody knows whether the operation was carried out. So
// the attempt must bear repetition. Ends at the latest with the session, by the
// client's kLostSession. Whatever `attempt` refers to must outlive the task.
template <class T>
Task<T> Repeat(Loop& loop, Random& random, std::function<Task<T>()> attempt) {
  Backoff backoff({}, random);
  for (;;) {
    std::exception_ptr fault;
    try {
      T result = co_await attempt();
      co_return result;
    } catch (...) {
      fault = std::current_exception();
    }
    if (VerdictOf(fault) != Verdict::kRetry) std::rethrow_exception(fault);
    co_await loop.SleepFor(backoff.Next());
  }
}

// The same for clean-up: ignores being told to stop and, in the end, any failure,
// of which the loss of the session is the usual one.
inline Task<> RepeatQuietly(Loop& loop, Random& random, std::function<Task<bool>()> attempt) {
  co_await IgnoreCancellation();
  try {
    co_await Repeat<bool>(loop, random, std::move(attempt));
  } catch (const std::exception& error) {
    log::Logger("nodepool.zk.ZooKeeper").Debug("Cleaning up: {}", error.what());
  }
}

}  // namespace nodepool::store
