#pragma once

#include <boost/asio/ip/address.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "base/log/logging.h"
#include "driver/cloud/cloud_provider.h"
#include "driver/provider.h"
#include "drivers/static/slot_table.h"
#include "drivers/static/static_config.h"

namespace nodepool::drivers {

// How a static provider reaches its hosts.
struct HostContact {
  driver::cloud::HostKeyScan scan;
  std::function<Task<boost::asio::ip::address>(std::string name)> resolve;
};

// Marks a free record `deleting`, for the deleted-node worker to remove. One that is
// locked, taken or not ready is left as it is.
Task<> Deregister(store::Store& store, Loop& loop, NodeId id);

// The records of a provider's hosts in the cache of nodes, found by the host.
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
             const HostRecords& records);

  const HostIdentity& identity() const { return identity_; }
  const StaticNode& node() const { return node_; }

  // Something may have changed: look again.
  void Wake() { wake_.Set(); }
  // Registers no more.
  void Idle() { is_idle_ = true; }

  // Looks at the host and its records now, and after each Wake(), until told to stop.
  // The first look also brings existing records up to date; a host that cannot be
  // used then loses its free records (drivers.md 7.4).
  Task<> Run();

  // Whether the host answers, right before it is handed out (drivers.md 7.7).
  Task<bool> IsAlive();
  // Whether the record stands for a slot, and is none too many.
  bool HasSlot(const NodeId& id) const;

 private:
  // What a look at the machine tells.
  struct Findings {
    std::vector<std::string> host_keys;
    boost::asio::ip::address address;
  };

  Task<> FirstSync();
  Task<> Sync();
  Task<> SyncUnlessIdle(bool is_first);
  Task<> RemoveExcess();
  Task<> RegisterEmptySlots(Findings findings);
  Task<> RegisterLocked(Findings findings);
  Task<> RegisterUnder(std::optional<zk::HeldLock>& lock, Findings findings);
  Task<> Release(std::optional<zk::HeldLock>& lock);
  Task<> RegisterBesidePeer(Findings findings, std::vector<int> slots);
  // Reserves the slots, and finds out which of them are ours.
  Task<> Compete(Findings findings, std::vector<int> slots, std::vector<store::LockedNode>& reserved,
                 std::vector<int>& won);
  Task<> Reserve(Findings findings, std::vector<int> slots, std::vector<store::LockedNode>& reserved);
  // Frees the records of the slots that were won, and removes the others.
  Task<> SettleAll(std::vector<store::LockedNode>& reserved, const std::vector<int>& won);
  Task<> Settle(store::LockedNode& node, bool is_wanted);
  Task<> UpdateRecords(Findings findings);
  Task<> DeregisterAll();
  Task<Findings> Look();

  std::vector<const store::StoredNode*> CachedRecords() const;
  SlotTable Table() const;
  bool IsUpToDate(const Node& record, const Findings& findings) const;
  void SetFields(const Findings& findings, Node& record) const;
  Node NewRecord(const Findings& findings, int slot) const;
  bool is_ssh() const;

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
};

}  // namespace nodepool::drivers
