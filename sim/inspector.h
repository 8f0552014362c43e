#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "base/testing/manual_clock.h"
#include "model/component.h"
#include "sim/flaky_cloud.h"
#include "sim/scenario.h"
#include "store/records.h"
#include "zk/client.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::sim {

// A process with a session: a launcher, or a consumer such as Zuul.
struct Participant {
  std::string name;  // "np1.2": the second life of launcher 1
  bool is_launcher = false;
  const zk::Client* client = nullptr;  // null once it is gone
  ApiUser api;
  // Set while its connection is cut, and some time after: changes since then may be unknown to it.
  std::optional<SteadyTime> blind_since;
};

// Checks every change of the tree as it happens for what must never happen: the safety half of the
// simulation.
//
//   - A locked record is written only by the owner of the lock.
//   - States follow each other as launcher.md 13 and 18 allow.
//   - A node belongs to one request at a time; it is given only while it is ready and
//     never taken from a fulfilled request that is still there.
//   - A fulfilled request has ready, unlocked nodes of the right labels in their order.
//   - A request fails only when every registered pool has declined it.
//   - Limits of pools, clouds and tenants, and max-concurrency, hold (see Excused()).
//   - A record is removed only after its machine.
//   - Uploads that are not validated are booted for their validation only, and these nodes are for nobody
//   else.
class Inspector {
 public:
  struct Violation {
    std::string text;
    std::vector<std::string> ids;  // of the records involved
  };
  struct SeenNode {
    Node record;
    SteadyTime created{};
    std::string creator;
    bool is_let_go = false;         // its creator's lock is gone
    bool let_go_by_holder = false;  // the last contender was the writer's own, and first
  };
  struct SeenPool {
    Component component;
    SteadyTime since{};
  };

  Inspector(const Scenario& scenario, testing::ManualClock& clock, testing::MemoryZk& zk, Clouds& clouds);

  void Add(std::shared_ptr<Participant> participant) { participants_.push_back(std::move(participant)); }

  // The first violation; nothing is checked after it.
  const std::optional<Violation>& violation() const { return violation_; }
  void Report(std::string text, std::vector<std::string> ids);

  // Called with a description of every change; empty: not called.
  std::function<void(std::string)> trace;

  // Ends at the next change of the request.
  Task<> RequestChanged(const RequestId& id) { return waiting_[id].Wait(); }

  const std::map<NodeId, SeenNode>& nodes() const { return nodes_; }
  const std::map<RequestId, NodeRequest>& requests() const { return requests_; }
  const std::map<std::string, SeenPool>& pools() const { return pools_; }
  SteadyTime now() const { return clock_.SteadyNow(); }
  bool IsLocked(const NodeId& id) const { return node_locks_.contains(id); }
  // Lock directories of requests, also empty ones, with the time of their creation.
  const std::map<RequestId, SteadyTime>& request_lock_directories() const { return directories_; }
  // The resources that nodes use in a pool, or in the whole provider if no pool is given.
  Resources UsedIn(const ProviderName& provider, const std::optional<PoolName>& pool) const;
  const drivers::FakeServer* MachineOf(const Node& node) const;

 private:
  // Contenders by number, each with its session; the first one owns the lock.
  using Contenders = std::map<std::string, std::int64_t>;

  // The cloud has taken the node's machine away, and no launcher may know it yet.
  bool IsTaken(const Node& node) const;
  void OnWrite(std::int64_t session, const zk::WatchEvent& change);
  void OnNode(const NodeId& id, const std::string& path, bool is_gone);
  void OnRequest(const RequestId& id, const std::string& path, bool is_gone);
  void OnComponent(const std::string& path, bool is_gone);
  template <class Id>
  void OnContender(std::map<Id, Contenders>& locks, const Id& id, const zk::WatchEvent& change);
  Participant* Find(std::int64_t session);
  std::string NameOf(Participant* participant) const { return participant ? participant->name : "a session"; }

  void CheckNewNode(const NodeId& id, const SeenNode& node);
  void CheckNode(const NodeId& id, const Node& before, const Node& after);
  void CheckAllocation(const NodeId& id, const Node& before, const Node& after);
  void CheckImage(const NodeId& id, const Node& before, const Node& after);
  void CheckVanishedNode(const NodeId& id, const SeenNode& last);
  void CheckRequest(const RequestId& id, const NodeRequest& before, const NodeRequest& after);
  void CheckFulfilled(const RequestId& id, const NodeRequest& request);
  void CheckFailed(const RequestId& id, const NodeRequest& request);
  bool IsOthersFault(const std::string& reason) const;
  void CheckQuota(const NodeId& id, const Node& node);
  void CheckTenant(const NodeId& id, const Node& node);
  void CheckConcurrency(const NodeId& id, const Node& node);
  Duration DecisionLag() const;
  bool CameWithoutAsking(const SeenNode& node) const;
  bool Excused(const SeenNode& node) const;
  Resources Used(std::function<bool(const SeenNode&)> counts) const;
  template <class Id>
  bool HoldsLock(const std::map<Id, Contenders>& locks, const Id& id) const;

  const Scenario& scenario_;
  testing::ManualClock& clock_;
  testing::MemoryZk& zk_;
  Clouds& clouds_;
  std::vector<std::shared_ptr<Participant>> participants_;
  std::map<std::int64_t, std::shared_ptr<Participant>> by_session_;
  std::optional<Violation> violation_;
  std::map<NodeId, SeenNode> nodes_;
  std::map<NodeId, Contenders> node_locks_;  // those with contenders
  std::map<RequestId, NodeRequest> requests_;
  std::map<RequestId, Contenders> request_locks_;
  std::map<RequestId, SteadyTime> directories_;
  std::map<std::string, SeenPool> pools_;  // by path
  std::map<RequestId, WaitList> waiting_;
  // Of the change being checked.
  std::int64_t session_ = 0;
  Participant* writer_ = nullptr;
};

template <class Id>
bool Inspector::HoldsLock(const std::map<Id, Contenders>& locks, const Id& id) const {
  auto lock = locks.find(id);
  return lock != locks.end() && lock->second.begin()->second == session_;
}

}  // namespace nodepool::sim
