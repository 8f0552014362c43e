#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "async/task_group.h"
#include "async/wake_loop.h"
#include "base/subscription.h"
#include "launcher/context.h"

namespace nodepool::launcher {

// Keeps `min-ready` free nodes of each label by submitting ordinary requests
// (launcher.md 14). What is under way counts, also when another launcher asked for
// it, so that several launchers do not make surplus nodes.
class MinReady {
 public:
  // `is_available` says whether a pool of this launcher could provide the label now.
  MinReady(Context& context, std::function<bool(const LabelName&)> is_available);
  ~MinReady();  // call Stop() first

  void Start();
  Task<> Stop();
  // A provider came up, an image appeared, ... : labels may be available now, and there may be
  // room for what lately found none.
  void CapacityChanged();

 private:
  // Says when to check again at the latest.
  SteadyTime CheckAll();
  void DropVanished();
  void Check(const LabelName& label, int min_ready);
  void RequestChanged(const RequestId& id, const store::StoredRequest* before,
                      const store::StoredRequest* after);
  int UnderWay(const LabelName& label) const;
  Task<> Submit(LabelName label);
  bool IsOurs(const store::StoredRequest& request) const;
  Task<> Finish(RequestId id, NodeRequest request);
  Task<> FinishOnce(RequestId id, NodeRequest request);
  Task<> AwaitSeenFree(NodeId node, RequestId request);
  SteadyTime HeldOffUntil(const LabelName& label) const;

  Context& context_;
  std::function<bool(const LabelName&)> is_available_;
  log::Logger logger_;
  std::set<RequestId> finishing_;                  // ours, decided
  std::map<LabelName, int> submitting_;            // being created
  std::map<LabelName, std::set<RequestId>> open_;  // of all launchers, until gone or failed
  std::map<LabelName, SteadyTime> failures_;       // when the last request failed (D-27)
  SteadyTime capacity_changed_{};                  // the last time
  SteadyTime next_sweep_{};
  WakeLoop checking_;
  std::map<NodeId, WaitList> node_changed_;  // who waits for the next change of which
  TaskGroup tasks_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
