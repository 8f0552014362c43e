#include "sched/requests/reason.h"

namespace nodepool::sched {

std::string_view ToString(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "";
    case Reason::kPoolDisabled:
      return "pool is disabled by max_servers";
    case Reason::kProviderPaused:
      return "the provider is paused";
    case Reason::kLabelNotAvailable:
      return "node type(s) not available";
    case Reason::kImageNotAvailable:
      return "images are not available";
    case Reason::kExceedsQuota:
      return "it would exceed quota";
    case Reason::kNotRequested:
      return "the request is not waiting";
    case Reason::kDeclinedBefore:
      return "this pool declined it before";
    case Reason::kOtherProviderWanted:
      return "it asks for another provider";
    case Reason::kPreferredPool:
      return "a pool with a smaller priority number can take it";
    case Reason::kOthersCanServe:
      return "this pool lacks a label, another pool has it";
    case Reason::kBreakerOpen:
      return "launches fail in this pool, another pool can take it";
    case Reason::kNoFreeNode:
      return "no node of the label is free";
    case Reason::kTenantLimit:
      return "the tenant's limit is reached";
    case Reason::kCapacityReserved:
      return "an earlier request waits for the same capacity";
    case Reason::kLaunchesInProgress:
      return "max-concurrency is reached";
    case Reason::kProviderFault:
      return "the provider cannot say now whether it has the label";
    case Reason::kProviderUnusable:
      return "the provider cannot be used";
  }
  return "";
}

}  // namespace nodepool::sched
