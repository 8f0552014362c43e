#pragma once

#include <boost/asio/ip/address.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task.h"
#include "base/ids.h"
#include "base/log/logging.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/provider_environment.h"
#include "driver/records_environment.h"
#include "drivers/static/static_config.h"
#include "model/node.h"
#include "store/cache/cached_records.h"
#include "store/records.h"

namespace nodepool::drivers {

// Whether another launcher may register slots of the provider without their lock (D-85), as launchers of the
// Python implementation do. One that is still starting has not announced its providers yet and counts for
// each. False when `components` is null.
bool HasUnlockedPeer(const store::ComponentRegistry* components, const ProviderName& provider);

HostIdentity IdentityOf(const Node& record);

// Which node is registered for which slot of a host.
struct SlotTable {
  std::vector<NodeId> slots;   // by slot; empty: no record
  std::vector<NodeId> excess;  // more records than slots

  std::vector<int> EmptySlots() const;
};

// The table of a host with `slot_count` slots. `records` are those of its identity;
// those that are building or about to vanish do not occupy a slot. Of two records for one slot the free one
// is in excess, since only a free one can be withdrawn.
SlotTable MakeSlotTable(int slot_count, std::vector<const store::StoredNode*> records);

// How a static provider reaches its hosts.
struct HostContact {
  driver::cloud::HostKeyScan scan;
  std::function<Task<boost::asio::ip::address>(std::string name)> resolve;
};

// What is known of a machine that can be used.
struct HostFindings {
  std::vector<std::string> host_keys;
  boost::asio::ip::address address;
};

// Reads the host's keys and resolves its name, within its time-out. An error: why it cannot be used;
// Error(kInvalid): it is not the configured one. Everything outlives the task.
Task<HostFindings> ContactHost(Loop& loop, const StaticNode& node, const HostContact& contact);

// Marks a free node `deleting`, for DeletedNodeWorker to remove. A node that is locked, allocated or not
// ready is left unchanged.
Task<> Deregister(store::Store& store, Loop& loop, NodeId id);

// The records of a provider's hosts in the node cache, by host.
class HostRecords {
 public:
  void Follow(const NodeId& id, const store::StoredNode* before, const store::StoredNode* after);
  const std::set<NodeId>& Of(const HostIdentity& identity) const;

 private:
  std::map<HostIdentity, std::set<NodeId>> by_host_;
};

// One configured host: keeps exactly one record for each of its slots.
class StaticHost {
 public:
  // Everything outlives the host.
  StaticHost(driver::ProviderEnvironment& environment, const driver::ProviderConfig& provider,
             const StaticPool& pool, const StaticNode& node, const HostContact& contact,
             const HostRecords& records, std::function<void()> fault_changed);

  const HostIdentity& identity() const { return identity_; }
  const StaticNode& node() const { return node_; }

  // Call when something may have changed: makes Run() check again.
  void Wake() { wake_.Set(); }
  // Registers no more nodes.
  void Idle() { is_idle_ = true; }

  // Checks the host and its records now and after each Wake(), until cancelled. The first check also updates
  // existing records; a host that cannot be used then loses its free records (drivers.md 7.4).
  Task<> Run();

  // Why the host could not be used when it was last asked; null: it could, or was not asked yet.
  const Failure* fault() const { return fault_ ? &*fault_ : nullptr; }

  // Whether the host answers, right before it is handed out (drivers.md 7.7).
  Task<bool> IsAlive();
  // Whether the record occupies a slot, i.e. is not a surplus one.
  bool HasSlot(const NodeId& id) const;

 private:
  Task<> FirstSync();
  Task<> Sync();
  Task<> SyncUnlessIdle(bool is_first);
  Task<> RemoveExcess();
  Task<> RegisterEmptySlots(HostFindings findings);
  Task<> RegisterLocked(HostFindings findings);
  Task<> RegisterUnder(std::optional<zk::HeldLock>& lock, HostFindings findings);
  Task<> Release(std::optional<zk::HeldLock>& lock);
  Task<> RegisterBesidePeer(HostFindings findings, std::vector<int> slots);
  // Reserves the slots and finds out which of them this launcher has won.
  Task<> Compete(HostFindings findings, std::vector<int> slots, std::vector<store::LockedNode>& reserved,
                 std::vector<int>& won);
  Task<> Reserve(HostFindings findings, std::vector<int> slots, std::vector<store::LockedNode>& reserved);
  // Frees the records of the slots that were won, and removes the others.
  Task<> SettleAll(std::vector<store::LockedNode>& reserved, const std::vector<int>& won);
  Task<> Settle(store::LockedNode& node, bool is_wanted);
  Task<> UpdateRecords(HostFindings findings);
  Task<> DeregisterAll();
  Task<HostFindings> CheckHost();
  void NoteAnswer(std::optional<Failure> fault);

  std::vector<const store::StoredNode*> CachedRecords() const;
  SlotTable Table() const;
  bool IsUpToDate(const Node& record, const HostFindings& findings) const;
  void SetFields(const HostFindings& findings, Node& record) const;
  Node NewRecord(const HostFindings& findings, int slot) const;

  driver::ProviderEnvironment& environment_;
  const driver::ProviderConfig& provider_;
  const StaticPool& pool_;
  const StaticNode& node_;
  const HostContact& contact_;
  const HostRecords& records_;
  HostIdentity identity_;
  log::Logger logger_{"nodepool.driver.static.StaticNodeProvider"};
  Event wake_{"work"};
  bool is_idle_ = false;
  std::function<void()> fault_changed_;
  std::optional<Failure> fault_;
  std::set<std::string> logged_;  // causes, since it last answered
};

}  // namespace nodepool::drivers
