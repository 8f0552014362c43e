#pragma once

#include <string>
#include <string_view>

namespace nodepool::sched {

// Why a pool does not take a request now. The same data goes to the log, the
// command line and the web page.
enum class Reason {
  kNone,
  // The pool declines: it can never serve the request as things are configured.
  kPoolDisabled,
  kLabelNotAvailable,
  kImageNotAvailable,
  kExceedsQuota,
  // The pool leaves the request alone for now.
  kNotRequested,         // somebody works on it, or it is finished
  kDeclinedBefore,       // by this very pool worker
  kOtherProviderWanted,  // the request names a provider that can still serve it
  kPreferredPool,        // a pool with a smaller priority number can take it
  kOthersCanServe,       // this pool lacks a label that another pool offers
  kNoFreeNode,           // a pool that launches nothing has no free node
  kTenantLimit,          // the tenant has used up its share
  kCapacityReserved,     // an earlier request waits for what this one would take
  kLaunchesInProgress,   // max-concurrency is reached
  kProviderFault,        // the driver cannot say now whether it can serve the label (D-26)
};

// A sentence for people, without the names involved; the four declines keep the
// field's wording (launcher.md 9.2).
std::string_view ToString(Reason reason);

inline bool IsDecline(Reason reason) {
  return reason == Reason::kPoolDisabled || reason == Reason::kLabelNotAvailable ||
         reason == Reason::kImageNotAvailable || reason == Reason::kExceedsQuota;
}

}  // namespace nodepool::sched
