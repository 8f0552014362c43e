#pragma once

#include <string>
#include <string_view>

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

}  // namespace nodepool::sched
