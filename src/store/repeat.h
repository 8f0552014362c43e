#pragma once

#include <functional>

#include "async/attempt.h"
#include "async/backoff.h"
#include "async/loop.h"
#include "base/random.h"

namespace nodepool::store {

// Awaits the task that `attempt` returns, and starts it again after a pause while it fails with
// kRetry: the connection was lost, and it is unknown whether the operation was carried out. So the
// attempt must be safe to repeat. Ends at the latest with the session, by the client's
// kLostSession. Whatever `attempt` refers to must outlive the task.
template <class T>
Task<T> Repeat(Loop& loop, Random& random, std::function<Task<T>()> attempt) {
  Backoff backoff({}, random);
  for (;;) {
    Outcome<T> outcome = co_await Attempt(attempt());
    if (!outcome && !FailedWith(outcome, Verdict::kRetry)) outcome.error().Rethrow();
    if constexpr (std::is_void_v<T>) {
      if (outcome) co_return;
    } else {
      if (outcome) co_return std::move(*outcome);
    }
    co_await loop.SleepFor(backoff.Next());
  }
}

}  // namespace nodepool::store
