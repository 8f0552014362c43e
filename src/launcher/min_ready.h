#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/reconciler.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "launcher/context.h"
#include "sched/nodes/stock.h"
#include "store/transaction.h"

namespace nodepool::launcher {

// Whether this launcher could provide a label now.
struct LabelOffer {
  bool is_available = false;
  std::string lacks;  // what its pools lack, if that concerns the label alone
};

// Keeps `min-ready` free nodes of each label by submitting ordinary requests
// (launcher.md 14). Nodes on their way count, also those that another launcher requested, and no two
// launchers decide on the same records, so that several of them make no surplus nodes.
class MinReady {
 public:
  using Shortages = std::map<LabelName, ShortStock>;

  // `report` gets the labels whose stock is short whenever they change: since the last request for one
  // failed, or it cannot be launched, and until a request is fulfilled or there are enough nodes.
  MinReady(Context& context, std::function<LabelOffer(const LabelName&)> offer_of,
           std::function<void(const Shortages&)> report);
  ~MinReady();  // call Stop() first

  void Start();
  Task<> Stop();
  // Call when a provider came up, an image appeared, etc.: more labels may be available now, and there may be
  // capacity again.
  void CapacityChanged();

 private:
  // Returns when to check again at the latest.
  SteadyTime CheckAll();
  void DropVanished();
  void DropShortages();
  void IsShort(const LabelName& label, std::string why);
  std::string WhyShort(const LabelName& label, const NodeRequest& failed) const;
  void IsNotShort(const LabelName& label);
  bool IsAvailable(const LabelName& label);
  void RequestChanged(const RequestId& id, const store::StoredRequest* before,
                      const store::StoredRequest* after);
  // The labels to request now, one for each node.
  std::vector<LabelName> Missing();
  sched::StockDecision Decide(const LabelName& label, int min_ready) const;
  int UnderWay(const LabelName& label) const;
  Task<> Submit();
  Task<bool> TrySubmit();
  NodeRequest RequestFor(const LabelName& label) const;
  bool IsOurs(const store::StoredRequest& request) const;
  std::optional<Reconciler<RequestId>::Work> FinishIfDecided(const RequestId& id);
  Task<> Finish(RequestId id, NodeRequest request);
  Task<> AwaitSeenFree(NodeId node, RequestId request);

  Context& context_;
  std::function<LabelOffer(const LabelName&)> offer_of_;
  std::function<void(const Shortages&)> report_;
  log::Logger logger_;
  store::MinReadyRequests requests_;
  bool is_submitting_ = false;
  std::map<LabelName, std::string> lacking_;  // logged
  Shortages shortages_;
  std::map<LabelName, std::set<RequestId>> open_;  // of all launchers; until the request is gone or failed
  std::map<LabelName, SteadyTime> failures_;       // when the last request failed (D-27)
  SteadyTime capacity_changed_{};                  // the last time
  SteadyTime next_sweep_{};
  WakeLoop checking_;
  std::map<NodeId, WaitList> node_changed_;  // tasks that wait for a node's next change
  Reconciler<RequestId> finishing_;          // ours, decided
  TaskGroup tasks_;
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
