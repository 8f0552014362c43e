#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "model/breaker.h"

// When launches are taken for broken, and when that is tested (breaker.md). Pure: time and randomness are
// arguments.
namespace nodepool::sched {

// One attempt to launch a node that has ended.
struct LaunchAttempt {
  SteadyTime ended{};
  PoolName pool;
  LabelName label;
  std::optional<FailureKind> failure;  // none: the node became ready
  std::string said;                    // the error
};

// The newest attempts that count for one breaker, oldest first: a bounded number.
class RecentAttempts {
 public:
  static constexpr std::size_t kMost = 20;
  static constexpr std::size_t kMostSaid = 300;  // bytes of an error that are kept

  void Add(LaunchAttempt attempt);
  // Those that ended within `window` before `now`.
  std::vector<LaunchAttempt> Within(Duration window, SteadyTime now) const;

 private:
  std::deque<LaunchAttempt> attempts_;
};

// The evidence on which the breaker of `key` opens now; nullopt: it stays closed (breaker.md 2).
std::optional<Breaker> Judge(const BreakerKey& key, const RecentAttempts& attempts,
                             const BreakerSettings& settings, SteadyTime now);

// For how long a breaker is not probed after it has opened, or after so many probes have failed: it doubles
// up to the longest, give or take a quarter. `chance` is uniform in [0, 1).
Duration ProbePause(const BreakerSettings& settings, std::int64_t failed_probes, double chance);

// How many launches in a row have to succeed before a breaker closes: one, and more of one that opened again
// soon after it had closed.
std::int64_t SuccessesToClose(const Breaker& breaker);

// How a breaker stands to the launches that count for it.
enum class Standing {
  kClosed,
  kMayProbe,  // open, and one launch may be tried
  kOpen,
};

// An open breaker as one launcher sees it. Of the breakers of a launch the widest that is open decides: where
// nothing of a provider works, what is known of one label is of no use.
struct OpenBreaker {
  bool is_own_probe = false;  // this launcher is the one that probes
  bool is_taken = false;      // and a request has been accepted for it
};
Standing StandingOf(const OpenBreaker& widest);

// What is known of the launcher that probes a breaker.
struct Prober {
  bool is_self = false;
  bool is_alive = false;
  Duration since{};  // that it has been the prober, as far as is known here
};
// Whether this launcher may begin to probe a breaker whose pause is over: nobody does, the prober is gone, or
// it is another one and has come to nothing for as long as the longest pause. It may be that requests are
// always taken by faster launchers.
bool IsProbeDue(const Breaker& breaker, const Prober& prober, const BreakerSettings& settings);

}  // namespace nodepool::sched
