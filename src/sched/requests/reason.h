#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace nodepool::sched {

// Why a pool does not take a request now. The same data is shown in the log, by the command line
// and on the web page.
enum class Reason {
  kNone,
  // The pool declines: it can never serve the request as things are configured.
  kPoolDisabled,
  kProviderPaused,  // by an operator (http-actions.md 1)
  kLabelNotAvailable,
  kImageNotAvailable,
  kExceedsQuota,
  // The pool leaves the request alone for now.
  kNotRequested,         // a pool works on it, or it is finished
  kDeclinedBefore,       // by this very pool worker
  kOtherProviderWanted,  // the request names a provider that can still serve it
  kPreferredPool,        // a pool with a smaller priority number can take it
  kOthersCanServe,       // this pool lacks a label that another pool offers
  kBreakerOpen,          // launches fail in this pool, and another one can take it (breaker.md 3)
  kNoFreeNode,           // a pool that launches nothing has no free node
  kTenantLimit,          // the tenant has used up its share
  kCapacityReserved,     // an earlier request waits for capacity that this one would use
  kLaunchesInProgress,   // max-concurrency is reached
  kProviderFault,        // the driver cannot say now whether it can serve the label (D-26)
  kProviderUnusable,     // the same, since the whole provider cannot be used (D-30)
};

// A sentence for operators, without the names involved; the declines have the wording of the Python
// implementation (launcher.md 9.2), but for kProviderPaused, which it does not know.
std::string_view ToString(Reason reason);

// What no event ends: the driver has to be asked again.
inline bool IsProviderFault(Reason reason) {
  return reason == Reason::kProviderFault || reason == Reason::kProviderUnusable;
}

// Of all that keeps a request waiting, what decides: the log, the command line and the web show it alone
// (operations.md 6.3).

// For programs: "tenant-limit", "capacity" ...; stable.
std::string_view CodeOf(Reason reason);
inline constexpr std::string_view kCapacityCode = "capacity";  // of an accepted request
// The launcher that could say why does not answer.
inline constexpr std::string_view kSilentLauncherCode = "launcher-silent";
inline constexpr std::string_view kNoLauncherCode = "no-launcher";

// Why a request waits, in one sentence. Equal causes have equal texts.
struct RequestReason {
  std::string code;
  PoolKey pool;          // empty: it is not the reason of a pool
  std::string text;      // names provider and pool where they matter
  std::string launcher;  // hostname of the one that says so; empty: unknown

  bool operator==(const RequestReason&) const = default;
};

// The sentence of a pool's reason, whose `text` is what is said of the pool: "uses 2 of 2 instances". Reasons
// that concern the whole provider do not name the pool, those that concern the request name none.
std::string SentenceOf(std::string_view code, const PoolKey& pool, std::string_view text);

// The smaller, the sooner the pool could serve the request if it were not for this reason. Any code; unknown
// ones, of other versions, count as faults.
int RankOf(std::string_view code);

// Whether the reason only says that the request is left to other pools, so that it is left out where there is
// another one.
bool IsLeftToOthers(std::string_view code);

// The reason that decides: the one of the smallest rank, the first of equals. Null: there is none.
const RequestReason* DecidingReason(const std::vector<RequestReason>& reasons);

// That a launcher does not answer, and why.
RequestReason SilentLauncher(const std::string& hostname, std::string_view why);

}  // namespace nodepool::sched
