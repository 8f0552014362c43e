#include "sched/requests/decline.h"

#include "model/decline_reasons.h"

namespace nodepool::sched {

void Decline(NodeRequest& request, const std::vector<Decliner>& decliners, const Registry& registry,
             WallTime now) {
  for (const Decliner& decliner : decliners) {
    if (!request.WasDeclinedBy(decliner.launcher)) request.declined_by.push_back(decliner.launcher);
    AddDeclineReason(request, decliner.reason);
  }
  request.SetState(registry.AllDeclined(request) ? RequestState::kFailed : RequestState::kRequested, now);
}

}  // namespace nodepool::sched
