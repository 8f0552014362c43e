#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "async/event.h"
#include "launcher/requests/rejected_nodes.h"
#include "sched/requests/fill.h"
#include "sched/requests/order.h"
#include "store/records.h"

namespace nodepool::launcher {

// An accepted request that waits for capacity. Everything it points to outlives its entry.
struct WaitingRequest {
  sched::FillPlan plan;           // with what it waits for
  bool takes_free_nodes = false;  // of the labels that it waits for, except:
  const RejectedNodes* rejected = nullptr;
  Event* changed = nullptr;  // wakes it
};

// The accepted requests of a pool that wait, in service order.
class WaitingRequests {
 public:
  void Put(const sched::ServiceOrder& order, WaitingRequest request);
  void Remove(const sched::ServiceOrder& order);
  // Null: there is none.
  const WaitingRequest* Find(const sched::ServiceOrder& order) const;

  void WakeAll() const;
  bool AnyMissesCapacity() const;
  // Whether any misses something that requests for other labels could take as well.
  bool AnyHoldsBack() const;
  // The pool's resources that they lack: all of them, or those before `before`.
  std::set<std::string> Missing(const sched::ServiceOrder* before = nullptr) const;
  // Whether any of them would take this free node.
  bool AnyTakes(const store::StoredNode& node) const;

 private:
  std::map<sched::ServiceOrder, WaitingRequest> requests_;
  std::set<std::pair<LabelName, sched::ServiceOrder>> takers_;  // of free nodes, by label
};

}  // namespace nodepool::launcher
