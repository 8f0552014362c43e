#include "sim/inspector.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/testing/manual_clock.h"
#include "model/image.h"
#include "model/node.h"
#include "model/node_request.h"
#include "sched/nodes/node_life.h"
#include "sim/flaky_cloud.h"
#include "store/record_kinds.h"

namespace nodepool::sim {

namespace {

using std::chrono::seconds;

// The age from which every launcher knows a pool's registration.
constexpr Duration kRegistryLag = seconds(30);

bool MayFollow(NodeState before, NodeState after) {
  using enum NodeState;
  if (before == after) return true;
  switch (before) {
    case kInit:
      return after == kBuilding || after == kDeleting;
    case kBuilding:
      return after == kReady || after == kFailed || after == kAborted || after == kDeleting;
    case kReady:
      return after == kInUse || after == kUsed || after == kHold || after == kDeleting;
    case kInUse:
      return after == kUsed || after == kHold || after == kDeleting;
    case kUsed:
    case kHold:
    case kFailed:
    case kAborted:
    case kTesting:
      return after == kDeleting;
    case kDeleting:
      return after == kDeleted;
    case kDeleted:
      return false;
  }
  return false;
}

bool MayFollow(RequestState before, RequestState after) {
  using enum RequestState;
  if (before == after) return true;
  if (before == kRequested) return after == kPending || after == kFailed;
  return before == kPending;
}

std::string StateOf(const Node& node) {
  return node.state ? std::string(ToString(*node.state)) : std::string("no state");
}

std::string Describe(const Node& node) {
  return fmt::format("{} {} in {}/{}{}{}", StateOf(node), fmt::join(node.type, ","), node.provider, node.pool,
                     node.allocated_to.empty() ? "" : " for " + node.allocated_to.value,
                     node.external_id.is_string()
                         ? " machine " + std::string(node.external_id.as_string()).substr(0, 8)
                         : "");
}

std::string Describe(const NodeRequest& request) {
  return fmt::format(
      "{} for {}{}{}{}", request.state ? ToString(*request.state) : "no state",
      fmt::join(request.node_types, ","), request.reuse ? "" : " (new ones)",
      request.nodes.empty() ? "" : fmt::format(" with {}", fmt::join(request.nodes, ",")),
      request.declined_by.empty() ? "" : fmt::format(", declined by {}", request.declined_by.size()));
}

}  // namespace

Inspector::Inspector(const Scenario& scenario, testing::ManualClock& clock, testing::MemoryZk& zk,
                     Clouds& clouds)
    : scenario_(scenario), clock_(clock), zk_(zk), clouds_(clouds) {
  zk_.OnWrite([this](std::int64_t session, const zk::WatchEvent& change) { OnWrite(session, change); });
}

void Inspector::Report(std::string text, std::vector<std::string> ids) {
  if (trace) {
    trace("* VIOLATION: " + text);
    for (const auto& [id, request] : requests_)
      trace(fmt::format("  left: request {} {}{}", id, Describe(request),
                        request_locks_.contains(id) ? ", locked" : ""));
    for (const auto& [id, node] : nodes_)
      trace(fmt::format("  left: node {} {}{}", id, Describe(node.record), IsLocked(id) ? ", locked" : ""));
  }
  if (!violation_) violation_ = Violation{std::move(text), std::move(ids)};
}

Participant* Inspector::Find(std::int64_t session) {
  if (session == 0) return nullptr;
  auto [known, is_new] = by_session_.try_emplace(session);
  if (!is_new) return known->second.get();
  for (const auto& participant : participants_) {
    if (participant->client != nullptr && participant->client->session().id == session) {
      known->second = participant;
    }
  }
  return known->second.get();
}

void Inspector::OnWrite(std::int64_t session, const zk::WatchEvent& change) {
  session_ = session;
  writer_ = Find(session);
  bool is_gone = change.type == zk::EventType::kDeleted;
  namespace paths = store::paths;
  if (paths::BelowNodes node = paths::ParseBelowNodes(change.path); !node.id.empty()) {
    if (node.part == paths::BelowNodes::Part::kRecord) OnNode(node.id, change.path, is_gone);
    if (node.part == paths::BelowNodes::Part::kContender) {
      bool is_holder = HoldsLock(node_locks_, node.id);
      OnContender(node_locks_, node.id, change);
      auto seen = nodes_.find(node.id);
      if (seen != nodes_.end() && !node_locks_.contains(node.id)) {
        seen->second.is_let_go = true;
        seen->second.let_go_by_holder = is_holder;
      }
    }
  } else if (auto request = paths::ParseRequest(change.path)) {
    OnRequest(*request, change.path, is_gone);
  } else if (auto lock = paths::ParseBelowRequestLocks(change.path)) {
    if (!lock->contender.empty()) return OnContender(request_locks_, lock->id, change);
    if (is_gone) {
      directories_.erase(lock->id);
    } else {
      directories_[lock->id] = clock_.SteadyNow();
    }
  } else if (paths::ParseComponent(change.path) == ComponentKind::kPool) {
    OnComponent(change.path, is_gone);
  }
}

template <class Id>
void Inspector::OnContender(std::map<Id, Contenders>& locks, const Id& id, const zk::WatchEvent& change) {
  constexpr std::size_t kDigits = 10;
  std::string number = change.path.substr(change.path.size() - kDigits);
  if (change.type == zk::EventType::kDeleted) {
    auto lock = locks.find(id);
    if (lock == locks.end()) return;
    bool is_owner = lock->second.begin()->first == number;
    lock->second.erase(number);
    if (lock->second.empty()) locks.erase(lock);
    if (trace && is_owner) trace(fmt::format("{} is unlocked", id));
    return;
  }
  auto stat = zk_.tree().Exists(change.path);
  if (!stat) return;  // created and removed in one transaction
  auto& contenders = locks[id];
  contenders.emplace(number, stat->ephemeral_owner);
  // Its consumer would find the node locked when it gets it.
  bool is_own = contenders.size() > 1 && contenders.begin()->second == stat->ephemeral_owner;
  if (is_own)
    Report(fmt::format("{} contends for {}, which it has locked itself", NameOf(writer_), id), {id.value});
  if (trace) {
    std::string_view how = contenders.size() == 1 ? "is locked" : "is also wanted";
    trace(fmt::format("{} {} by {}", id, how, NameOf(writer_)));
  }
}

void Inspector::OnComponent(const std::string& path, bool is_gone) {
  if (is_gone) {
    pools_.erase(path);
    if (trace) trace(fmt::format("{} is no longer registered", path));
    return;
  }
  auto data = zk_.tree().Get(path);
  if (!data) return;
  auto component = ParseComponent(ComponentKind::kPool, data->data);
  if (!component) return Report("a component record cannot be parsed: " + path, {});
  auto [pool, is_new] = pools_.try_emplace(path);
  if (is_new) pool->second.since = clock_.SteadyNow();
  pool->second.component = *component;
  if (trace) {
    trace(fmt::format("{} is registered: {}/{}{}", component->id, component->provider_name,
                      component->name.value_or(PoolName()), component->is_paused ? ", paused" : ""));
  }
}

// --- Nodes ----------------------------------------------------------------------

void Inspector::OnNode(const NodeId& id, const std::string& path, bool is_gone) {
  auto known = nodes_.find(id);
  if (is_gone) {
    if (trace) trace(fmt::format("node {} is removed by {}", id, NameOf(writer_)));
    if (known == nodes_.end()) return;
    SeenNode last = std::move(known->second);
    nodes_.erase(known);
    node_locks_.erase(id);
    return CheckVanishedNode(id, last);
  }
  auto data = zk_.tree().Get(path);
  if (!data) return;  // removed within the same transaction
  if (data->data.empty()) return Report(fmt::format("node {} has an empty record", id), {id.value});
  auto node = ParseNode(data->data, clock_.Now());
  if (!node) return Report(fmt::format("node {} cannot be parsed", id), {id.value});
  if (trace) trace(fmt::format("node {} by {}: {}", id, NameOf(writer_), Describe(*node)));
  if (known == nodes_.end()) {
    SeenNode& fresh = nodes_[id] = {*node, clock_.SteadyNow(), NameOf(writer_)};
    return CheckNewNode(id, fresh);
  }
  Node before = std::exchange(known->second.record, std::move(*node));
  CheckNode(id, before, known->second.record);
}

void Inspector::CheckNewNode(const NodeId& id, const SeenNode& node) {
  std::vector<std::string> ids = {id.value, node.record.allocated_to.value};
  if (node.record.state != NodeState::kInit) Report(fmt::format("node {} is not born init", id), ids);
  auto request = requests_.find(node.record.allocated_to);
  if (request != requests_.end() && request->second.state != RequestState::kPending) {
    Report(fmt::format("node {} is made for a request that is not pending", id), ids);
  }
  CheckQuota(id, node.record);
  CheckTenant(id, node.record);
}

void Inspector::CheckNode(const NodeId& id, const Node& before, const Node& after) {
  std::vector<std::string> ids = {id.value, before.allocated_to.value, after.allocated_to.value};
  if (!before.state || !after.state || !MayFollow(*before.state, *after.state)) {
    return Report(fmt::format("node {} goes from {} to {}", id, StateOf(before), StateOf(after)), ids);
  }
  // Two processes that remove a node at once do the same. The node of a min-ready request is released without
  // the lock, while another launcher may check whether it is garbage.
  bool is_released =
      before.state == after.state && (after.allocated_to.empty() || after.state == NodeState::kDeleted);
  // That the cloud has taken a machine in use is noted without the lock, which is the client's
  // (drivers.md 5.16).
  Node noted = before;
  noted.comment = after.comment;
  bool is_note = IsTaken(after) && ToJson(noted) == ToJson(after);
  if (!HoldsLock(node_locks_, id) && !is_released && !is_note) {
    Report(fmt::format("{} writes node {} ({} to {}) without holding its lock", NameOf(writer_), id,
                       StateOf(before), StateOf(after)),
           ids);
  }
  if (before.allocated_to != after.allocated_to) CheckAllocation(id, before, after);
  if (before.image_id != after.image_id) CheckImage(id, before, after);
  bool is_taken = before.state == NodeState::kReady && after.state == NodeState::kDeleting;
  auto request = requests_.find(before.allocated_to);
  if (is_taken && request != requests_.end() && request->second.state == RequestState::kFulfilled) {
    Report(fmt::format("node {} is deleted although request {} was fulfilled with it", id, request->first),
           ids);
  }
  if (after.state == NodeState::kBuilding && before.state != after.state) CheckConcurrency(id, after);
  if (after.tenant_name != before.tenant_name) CheckTenant(id, after);
}

void Inspector::CheckAllocation(const NodeId& id, const Node& before, const Node& after) {
  std::vector<std::string> ids = {id.value, before.allocated_to.value, after.allocated_to.value};
  if (!before.allocated_to.empty() && !after.allocated_to.empty()) {
    return Report(fmt::format("node {} goes from request {} straight to {}", id, before.allocated_to,
                              after.allocated_to),
                  ids);
  }
  if (after.allocated_to.empty()) {
    auto request = requests_.find(before.allocated_to);
    bool is_promised = request != requests_.end() && request->second.state == RequestState::kFulfilled &&
                       request->second.requestor != kMinReadyRequestor;
    if (is_promised)
      Report(fmt::format("node {} is taken from the fulfilled request {}", id, before.allocated_to), ids);
    return;
  }
  if (before.state != NodeState::kReady || after.state != NodeState::kReady) {
    Report(fmt::format("node {} is given to request {} while {}", id, after.allocated_to, StateOf(before)),
           ids);
  }
  if (!HoldsLock(request_locks_, after.allocated_to)) {
    auto request = requests_.find(after.allocated_to);
    if (request != requests_.end())
      Report(fmt::format("node {} is given to request {} by a process that does not hold its lock", id,
                         after.allocated_to),
             ids);
  }
}

// The upload may have failed, and its record be gone, while its machine boots.
void Inspector::CheckImage(const NodeId& id, const Node& /*before*/, const Node& after) {
  if (!after.image_id || !after.image_id->starts_with("/nodepool/images/")) return;
  auto data = zk_.tree().Get(*after.image_id);
  auto upload = data ? ParseImageUpload(data->data, clock_.Now()) : Expected<ImageUpload>();
  bool is_ready = data && upload && upload->state == ImageState::kReady;
  bool is_validated = IsForValidation(after);
  if (is_validated == !is_ready) return;
  Report(fmt::format("node {} of {} boots an upload that is {}ready", id, fmt::join(after.type, ","),
                     is_ready ? "" : "not "),
         {id.value, after.allocated_to.value});
}

// `deleting` is not shown of a machine that is gone at once; the lock is given up in the same transaction.
void Inspector::CheckVanishedNode(const NodeId& id, const SeenNode& last) {
  NodeState state = last.record.state.value_or(NodeState::kReady);
  bool is_shown = state == NodeState::kDeleting || state == NodeState::kDeleted;
  bool is_expected = is_shown || (sched::IsGarbageWhenUnlocked(state) && last.let_go_by_holder);
  if (!is_expected)
    return Report(fmt::format("node {} vanishes while {}", id, StateOf(last.record)), {id.value});
  if (MachineOf(last.record) != nullptr)
    Report(fmt::format("the record of node {} is removed before its machine", id), {id.value});
}

const drivers::FakeServer* Inspector::MachineOf(const Node& node) const {
  drivers::FakeCloud* cloud = clouds_.all.Find(node.provider);
  if (cloud == nullptr || !node.external_id.is_string()) return nullptr;
  auto server = cloud->servers().find(std::string(node.external_id.as_string()));
  return server == cloud->servers().end() ? nullptr : &server->second;
}

bool Inspector::IsTaken(const Node& node) const {
  auto view = clouds_.views.find(node.provider);
  return view != clouds_.views.end() && node.external_id.is_string() &&
         view->second.taken.contains(std::string(node.external_id.as_string()));
}

// --- Requests -------------------------------------------------------------------

void Inspector::OnRequest(const RequestId& id, const std::string& path, bool is_gone) {
  if (auto waiting = waiting_.find(id); waiting != waiting_.end()) waiting->second.NotifyAll();
  auto known = requests_.find(id);
  if (is_gone) {
    if (trace) trace(fmt::format("request {} is removed by {}", id, NameOf(writer_)));
    if (known != requests_.end()) requests_.erase(known);
    return;
  }
  auto data = zk_.tree().Get(path);
  if (!data) return;
  auto request = ParseNodeRequest(data->data, clock_.Now());
  if (!request) return Report(fmt::format("request {} cannot be parsed", id), {id.value});
  if (trace) trace(fmt::format("request {} by {}: {}", id, NameOf(writer_), Describe(*request)));
  if (known == requests_.end()) {
    requests_.emplace(id, std::move(*request));
    return;
  }
  NodeRequest before = std::exchange(known->second, std::move(*request));
  CheckRequest(id, before, known->second);
}

void Inspector::CheckRequest(const RequestId& id, const NodeRequest& before, const NodeRequest& after) {
  if (!HoldsLock(request_locks_, id)) {
    Report(fmt::format("{} writes request {} without holding its lock", NameOf(writer_), id), {id.value});
  }
  if (!MayFollow(*before.state, *after.state)) {
    Report(fmt::format("request {} goes from {} to {}", id, ToString(*before.state), ToString(*after.state)),
           {id.value});
  }
  bool is_appended =
      after.declined_by.size() >= before.declined_by.size() &&
      std::equal(before.declined_by.begin(), before.declined_by.end(), after.declined_by.begin());
  if (!is_appended) Report(fmt::format("request {} loses a decline", id), {id.value});
  bool is_unchanged = before.node_types == after.node_types && before.requestor == after.requestor &&
                      before.tenant_name == after.tenant_name && before.provider == after.provider &&
                      before.event_id == after.event_id;
  if (!is_unchanged) Report(fmt::format("request {} is changed in what its client wrote", id), {id.value});
  if (before.state == after.state) return;
  if (after.state == RequestState::kFulfilled) CheckFulfilled(id, after);
  if (after.state == RequestState::kFailed) CheckFailed(id, after);
  if (after.state != RequestState::kFulfilled && !after.nodes.empty())
    Report(fmt::format("request {} lists nodes while {}", id, ToString(*after.state)), {id.value});
}

void Inspector::CheckFulfilled(const RequestId& id, const NodeRequest& request) {
  std::vector<std::string> ids = {id.value};
  for (const NodeId& node : request.nodes) ids.push_back(node.value);
  if (request.nodes.size() != request.node_types.size())
    return Report(fmt::format("request {} is fulfilled with too few nodes", id), ids);
  std::set<NodeId> distinct(request.nodes.begin(), request.nodes.end());
  if (distinct.size() != request.nodes.size())
    return Report(fmt::format("request {} is fulfilled with one node twice", id), ids);
  for (std::size_t i = 0; i < request.nodes.size(); ++i) {
    auto node = nodes_.find(request.nodes[i]);
    if (node == nodes_.end())
      return Report(fmt::format("request {} is fulfilled with node {} that is gone", id, request.nodes[i]),
                    ids);
    const Node& record = node->second.record;
    // Another contender may be about to leave; the launcher itself must not be one.
    bool is_held = HoldsLock(node_locks_, node->first);
    if (record.state != NodeState::kReady || record.allocated_to != id || is_held) {
      Report(fmt::format("request {} is fulfilled with node {} which is {}{}", id, node->first,
                         Describe(record), is_held ? " and locked" : ""),
             ids);
    }
    if (IsForValidation(record) && request.requestor != kValidationRequestor)
      Report(fmt::format("request {} is fulfilled with node {}, which validates an upload", id, node->first),
             ids);
    if (!record.has_label(request.node_types[i]))
      Report(fmt::format("request {} is fulfilled in the wrong order", id), ids);
    if (MachineOf(record) == nullptr && !IsTaken(record))
      Report(fmt::format("request {} is fulfilled with node {} without a machine", id, node->first), ids);
    for (const auto& [other, listed] : requests_) {
      // A node is taken from a min-ready request before the request is removed (launcher.md 14).
      bool is_min_ready = listed.requestor == kMinReadyRequestor;
      if (other != id && !is_min_ready && std::ranges::count(listed.nodes, node->first) > 0)
        Report(fmt::format("requests {} and {} are fulfilled with node {}", id, other, node->first), ids);
    }
  }
}

void Inspector::CheckFailed(const RequestId& id, const NodeRequest& request) {
  for (const auto& [path, pool] : pools_) {
    if (request.WasDeclinedBy(pool.component.id) || clock_.SteadyNow() - pool.since < kRegistryLag) continue;
    Report(fmt::format("request {} fails though {} has not declined it", id, pool.component.id), {id.value});
  }
  for (const std::string& reason : DeclineReasons(request)) {
    if (IsOthersFault(reason)) Report(fmt::format("request {} fails: {}", id, reason), {id.value});
  }
}

// What costs no request its life (drivers.md 5.4, launcher.md 15.3). A cloud that loses one call in ten may
// lose so many of one launch that it counts as the launch's fault.
bool Inspector::IsOthersFault(const std::string& reason) const {
  auto says = [&reason](std::string_view text) { return reason.find(text) != std::string::npos; };
  bool is_alone = scenario_.pools.size() == 1 && scenario_.launchers.size() == 1;
  bool is_over = says("launch-timeout");
  return (says(kUnreachable) && scenario_.trouble.api_fault_rate == 0) || says(kThrottled) ||
         says(kNoQuota) || (says(kNoCapacity) && is_alone && !is_over);
}

}  // namespace nodepool::sim
