#include "drivers/metastatic/backing_nodes.h"

namespace nodepool::drivers {

bool BackingNodes::Follow(const NodeId& id, const store::StoredNode* before, const store::StoredNode* after,
                          WallTime now) {
  const store::StoredNode* any = after != nullptr ? after : before;
  if (any->record.provider == config_->name) {
    FollowUser(id, after, now);
    return false;
  }
  std::optional<BackingNode> node;
  if (after != nullptr && after->record.state == NodeState::kInUse)
    node = ParseBackingNode(after->record.user_data.value(), owner_);
  if (!node) {
    bool was_known = known_.contains(id);
    Remove(id);
    return was_known;
  }
  Set(id, std::move(*node), now);
  return true;
}

void BackingNodes::Set(const NodeId& id, BackingNode node, WallTime now) {
  Unindex(id);
  Known& known = known_[id];
  known.node = Completed(id, std::move(node));
  if (!known.node.users.empty()) {
    known.idle_since.reset();
  } else if (!known.idle_since) {
    known.idle_since = now;
  }
  Index(id, now);
}

void BackingNodes::Verify(const NodeId& id, bool is_owners, WallTime now) {
  auto found = known_.find(id);
  if (found == known_.end()) return;
  if (!is_owners) return Remove(id);
  Unindex(id);
  found->second.is_verified = true;
  Index(id, now);
}

void BackingNodes::MarkFailing(const NodeId& id, WallTime now) {
  auto found = known_.find(id);
  if (found == known_.end() || found->second.node.has_failed) return;
  Unindex(id);
  found->second.is_failing = true;
  Index(id, now);
}

const BackingNodes::Known* BackingNodes::Find(const NodeId& id) const {
  auto found = known_.find(id);
  return found == known_.end() ? nullptr : &found->second;
}

std::optional<NodeId> BackingNodes::WithRoom(const LabelName& label, WallTime now) {
  std::set<NodeId>& candidates = with_room_[label];
  while (!candidates.empty()) {
    NodeId id = *candidates.begin();
    const BackingNode& node = known_.at(id).node;
    if (MayServe(node, LabelOf(node), now)) return id;
    candidates.erase(candidates.begin());  // it is too old by now
  }
  return std::nullopt;
}

std::optional<NodeId> BackingNodes::PlaceOf(const NodeId& user) const {
  if (auto place = places_.find(user); place != places_.end()) return place->second;
  if (auto reported = reported_places_.find(user); reported != reported_places_.end())
    return reported->second.backing_node;
  return std::nullopt;
}

BackingNode BackingNodes::Completed(const NodeId& id, BackingNode node) const {
  auto reported = reported_users_.find(id);
  if (!node.lists_users && reported != reported_users_.end()) {
    for (const auto& [slot, user] : reported->second) node.users.emplace(slot, user);
  }
  return node;
}

std::set<NodeId> BackingNodes::DueForRelease(WallTime now) const {
  std::set<NodeId> due;
  for (const auto& [time, id] : releases_) {
    if (time > now) break;
    due.insert(id);
  }
  return due;
}

std::optional<WallTime> BackingNodes::next_release() const {
  return releases_.empty() ? std::nullopt : std::optional(releases_.begin()->first);
}

void BackingNodes::PostponeRelease(const NodeId& id, WallTime when) {
  auto time = release_times_.find(id);
  if (time == release_times_.end()) return;
  releases_.erase({time->second, id});
  time->second = when;
  releases_.emplace(when, id);
}

std::map<NodeId, NodeId> BackingNodes::UsersWithoutRecord() const {
  std::map<NodeId, NodeId> missing;
  for (const auto& [user, backing] : places_) {
    if (nodes_.Find(user) == nullptr) missing.emplace(user, backing);
  }
  return missing;
}

void BackingNodes::Remove(const NodeId& id) {
  Unindex(id);
  known_.erase(id);
}

// A node that is not verified is neither used nor released.
void BackingNodes::Index(const NodeId& id, WallTime now) {
  const Known& known = known_.at(id);
  if (!known.is_verified) {
    unverified_.insert(id);
    return;
  }
  const BackingNode& node = known.node;
  const MetastaticLabel* label = LabelOf(node);
  for (const auto& [slot, user] : node.users) places_[user] = id;
  if (known.is_failing && !node.has_failed) failing_.insert(id);
  bool has_room = !known.is_failing && MayServe(node, label, now) && node.FreeSlot();
  if (has_room) with_room_[node.label].insert(id);
  if (!known.idle_since) return;
  BackingNode as_marked = node;
  as_marked.has_failed = node.has_failed || known.is_failing;
  WallTime release = ReleaseTime(as_marked, label, *known.idle_since);
  releases_.emplace(release, id);
  release_times_[id] = release;
}

void BackingNodes::Unindex(const NodeId& id) {
  auto known = known_.find(id);
  if (known == known_.end()) return;
  unverified_.erase(id);
  failing_.erase(id);
  with_room_[known->second.node.label].erase(id);
  for (const auto& [slot, user] : known->second.node.users) places_.erase(user);
  if (auto time = release_times_.find(id); time != release_times_.end()) {
    releases_.erase({time->second, id});
    release_times_.erase(time);
  }
}

// The records of its users changed, which matters if the node does not list its users.
void BackingNodes::Reread(const NodeId& id, WallTime now) {
  auto known = known_.find(id);
  const store::StoredNode* stored = nodes_.Find(id);
  if (known == known_.end() || known->second.node.lists_users || stored == nullptr) return;
  std::optional<BackingNode> node = ParseBackingNode(stored->record.user_data.value(), owner_);
  if (node) Set(id, std::move(*node), now);
}

void BackingNodes::FollowUser(const NodeId& id, const store::StoredNode* after, WallTime now) {
  std::set<NodeId> affected;
  if (auto reported = reported_places_.find(id); reported != reported_places_.end()) {
    affected.insert(reported->second.backing_node);
    auto users = reported_users_.find(reported->second.backing_node);
    if (users != reported_users_.end()) {
      users->second.erase(reported->second.slot);
      if (users->second.empty()) reported_users_.erase(users);
    }
    reported_places_.erase(reported);
  }
  std::optional<Place> place =
      after == nullptr ? std::nullopt : ParsePlace(after->record.driver_data.value());
  if (place) {
    affected.insert(place->backing_node);
    reported_users_[place->backing_node][place->slot] = id;
    reported_places_.emplace(id, std::move(*place));
  }
  for (const NodeId& backing : affected) Reread(backing, now);
}

}  // namespace nodepool::drivers
