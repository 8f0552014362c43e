#include "sched/requests/decline.h"

namespace nodepool::sched {

void Decline(NodeRequest& request, const std::vector<LauncherId>& decliners, const Registry& registry,
             WallTime now) {
  for (const LauncherId& launcher : decliners) {
    if (!request.WasDeclinedBy(launcher)) request.declined_by.push_back(launcher);
  }
  request.SetState(registry.AllDeclined(request) ? RequestState::kFailed : RequestState::kRequested, now);
}

}  // namespace nodepool::sched
