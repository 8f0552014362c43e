#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "drivers/metastatic/backing_node.h"
#include "store/cache/node_cache.h"

namespace nodepool::drivers {

// The backing nodes of one owner as the cache of nodes shows them, with what has to be
// found quickly: one with room for a label, the place of a user, the next to release.
class BackingNodes {
 public:
  struct Known {
    BackingNode node;
    bool is_verified = false;  // its lock is the owner's: the record is no forgery
    bool is_failing = false;   // to be marked as failed
    std::optional<WallTime> idle_since;
  };

  BackingNodes(const store::NodeCache& nodes, std::shared_ptr<const MetastaticConfig> config)
      : nodes_(nodes), config_(std::move(config)), owner_(OwnerName(config_->name)) {}

  // The record changed, appeared or (null) vanished. Whether that mattered.
  bool Follow(const NodeId& id, const store::StoredNode* before, const store::StoredNode* after,
              WallTime now);
  // What was written, before the cache has it.
  void Set(const NodeId& id, BackingNode node, WallTime now);
  void Verify(const NodeId& id, bool is_owners, WallTime now);
  void MarkFailing(const NodeId& id, WallTime now);

  const Known* Find(const NodeId& id) const;
  // The eldest that has a free slot for the label.
  std::optional<NodeId> WithRoom(const LabelName& label, WallTime now);
  std::optional<NodeId> PlaceOf(const NodeId& user) const;
  // With the users that only their own records tell of, where it lists none (drivers.md 8.3).
  BackingNode Completed(const NodeId& id, BackingNode node) const;
  const std::set<NodeId>& unverified() const { return unverified_; }
  const std::set<NodeId>& failing() const { return failing_; }
  // Those whose time has come, and when the next one's will be.
  std::set<NodeId> DueForRelease(WallTime now) const;
  std::optional<WallTime> next_release() const;
  // Not before `when`.
  void PostponeRelease(const NodeId& id, WallTime when);
  // Users whose records are gone, with their backing nodes.
  std::map<NodeId, NodeId> UsersWithoutRecord() const;
  std::size_t size() const { return known_.size(); }

 private:
  void Forget(const NodeId& id);
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
  std::map<NodeId, NodeId> places_;                     // of users, by the backing nodes' records
  std::map<NodeId, Place> told_places_;                 // by the users' own
  std::map<NodeId, std::map<int, NodeId>> told_users_;  // the same the other way round
  std::set<std::pair<WallTime, NodeId>> releases_;
  std::map<NodeId, WallTime> release_times_;
};

}  // namespace nodepool::drivers
