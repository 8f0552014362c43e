#pragma once

#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "drivers/metastatic/metastatic_config.h"
#include "model/node.h"
#include "store/cache/cached_records.h"

namespace nodepool::drivers {

// What the owner of a backing node stores in the node's user_data (drivers.md 8.2).
struct BackingNode {
  LabelName label;  // of the user nodes in its slots
  int slots = 1;
  bool has_failed = false;  // no more slots are handed out
  WallTime launched{};      // when it was requested
  // The user node of each slot. An addition to the keys of the Python implementation: taking a slot is one
  // write, which another launcher cannot miss (D-84).
  std::map<int, NodeId> users;
  bool lists_users = true;  // false: written by a program that stores users only in their own records

  // The lowest free slot.
  std::optional<int> FreeSlot() const;
  std::optional<int> SlotOf(const NodeId& user) const;
};

// "NodePool:metastatic:<provider>".
std::string OwnerName(const ProviderName& provider);

// nullopt: it is another owner's, or not a backing node's data.
std::optional<BackingNode> ParseBackingNode(const boost::json::value& user_data, const std::string& owner);
boost::json::value ToUserData(const BackingNode& node, const std::string& owner);
// That of a backing node in use.
std::optional<BackingNode> BackingNodeInUse(const Node& record, const std::string& owner);
// Takes the user out of its slot, in `node` and in the record that it was read from. False: it has none, and
// nothing is changed.
bool RemoveUser(const NodeId& user, const std::string& owner, BackingNode& node, Node& record);

// A user node's place according to its own driver_data; also what the driver_data is before there is a place.
struct Place {
  NodeId backing_node;
  int slot = 0;
};
std::optional<Place> ParsePlace(const boost::json::value& driver_data);
boost::json::value ToDriverData(const Place& place, const NodeId& user,
                                const std::map<std::string, std::string>& metadata);

// Whether a slot of it may be handed out. `label` is its label's configuration; null: no longer configured.
bool MayServe(const BackingNode& node, const MetastaticLabel* label, WallTime now);

// When a node that has no users since `idle_since` is to be released (drivers.md 8.6).
WallTime ReleaseTime(const BackingNode& node, const MetastaticLabel* label, WallTime idle_since);

// The backing nodes of one owner in the node cache, with indexes: a node with a free slot for a label, the
// place of a user, the next node to release.
class BackingNodes {
 public:
  struct Known {
    BackingNode node;
    bool is_verified = false;  // its lock is the owner's, so the record is not forged
    bool is_failing = false;   // to be marked as failed
    std::optional<WallTime> idle_since;
  };

  BackingNodes(const store::NodeCache& nodes, std::shared_ptr<const MetastaticConfig> config)
      : nodes_(nodes), config_(std::move(config)), owner_(OwnerName(config_->name)) {}

  // Follows a record that changed, appeared or (null) vanished. Returns whether it was relevant.
  bool Follow(const NodeId& id, const store::StoredNode* before, const store::StoredNode* after,
              WallTime now);
  // Sets what was written, before the cache shows it.
  void Set(const NodeId& id, BackingNode node, WallTime now);
  void Verify(const NodeId& id, bool is_owners, WallTime now);
  void MarkFailing(const NodeId& id, WallTime now);

  const Known* Find(const NodeId& id) const;
  // The oldest node with a free slot for the label.
  std::optional<NodeId> WithRoom(const LabelName& label, WallTime now);
  std::optional<NodeId> PlaceOf(const NodeId& user) const;
  // The node with the users known from their own records added, if it lists none (drivers.md 8.3).
  BackingNode Completed(const NodeId& id, BackingNode node) const;
  const std::set<NodeId>& unverified() const { return unverified_; }
  const std::set<NodeId>& failing() const { return failing_; }
  // The nodes that are due for release, and when the next one will be.
  std::set<NodeId> DueForRelease(WallTime now) const;
  std::optional<WallTime> next_release() const;
  // Not before `when`.
  void PostponeRelease(const NodeId& id, WallTime when);
  // Users whose records are gone, with their backing nodes.
  std::map<NodeId, NodeId> UsersWithoutRecord() const;
  std::size_t size() const { return known_.size(); }

 private:
  void Remove(const NodeId& id);
  void Reread(const NodeId& id, WallTime now);
  void Index(const NodeId& id, WallTime now);
  void Unindex(const NodeId& id);
  void FollowUser(const NodeId& id, const store::StoredNode* after, WallTime now);
  const MetastaticLabel* LabelOf(const BackingNode& node) const { return config_->FindLabel(node.label); }

  const store::NodeCache& nodes_;
  std::shared_ptr<const MetastaticConfig> config_;
  std::string owner_;
  std::map<NodeId, Known> known_;
  std::map<LabelName, std::set<NodeId>> with_room_;
  std::set<NodeId> unverified_;
  std::set<NodeId> failing_;
  std::map<NodeId, NodeId> places_;          // of users, according to the backing nodes' records
  std::map<NodeId, Place> reported_places_;  // according to the users' own records
  std::map<NodeId, std::map<int, NodeId>> reported_users_;  // the inverse of reported_places_
  std::set<std::pair<WallTime, NodeId>> releases_;
  std::map<NodeId, WallTime> release_times_;
};

}  // namespace nodepool::drivers
