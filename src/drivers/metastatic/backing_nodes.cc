#include "drivers/metastatic/backing_nodes.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

namespace nodepool::drivers {

namespace {

constexpr double kMaxSlots = 10'000;
constexpr double kLatest = 4e9;  // seconds since the epoch

std::string TextOf(const boost::json::object& object, std::string_view key) {
  const boost::json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
}

double NumberOf(const boost::json::object& object, std::string_view key) {
  const boost::json::value* value = object.if_contains(key);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

std::map<int, NodeId> ParseUsers(const boost::json::object& object, int slots) {
  std::map<int, NodeId> users;
  const boost::json::value* value = object.if_contains("users");
  if (value == nullptr || !value->is_object()) return users;
  for (const auto& [key, node] : value->as_object()) {
    int slot = -1;
    std::from_chars(key.data(), key.data() + key.size(), slot);
    if (slot >= 0 && slot < slots && node.is_string()) users[slot] = NodeId(std::string(node.as_string()));
  }
  return users;
}

}  // namespace

std::optional<int> BackingNode::FreeSlot() const {
  for (int slot = 0; slot < slots; ++slot) {
    if (!users.contains(slot)) return slot;
  }
  return std::nullopt;
}

std::optional<int> BackingNode::SlotOf(const NodeId& user) const {
  auto found = std::ranges::find(users, user, [](const auto& entry) { return entry.second; });
  return found == users.end() ? std::nullopt : std::optional(found->first);
}

std::string OwnerName(const ProviderName& provider) { return "NodePool:metastatic:" + provider.str(); }

std::optional<BackingNode> ParseBackingNode(const boost::json::value& user_data, const std::string& owner) {
  if (!user_data.is_string()) return std::nullopt;
  boost::system::error_code error;
  boost::json::value parsed = boost::json::parse(std::string_view(user_data.as_string()), error);
  if (error || !parsed.is_object()) return std::nullopt;
  const boost::json::object& object = parsed.as_object();
  if (TextOf(object, "owner") != owner) return std::nullopt;
  BackingNode node;
  node.label = LabelName(TextOf(object, "label"));
  node.slots = static_cast<int>(std::clamp<double>(NumberOf(object, "slots"), 0, kMaxSlots));
  const boost::json::value* failed = object.if_contains("failed");
  node.has_failed = failed != nullptr && failed->is_bool() && failed->as_bool();
  node.launched = FromSeconds(std::clamp(NumberOf(object, "launched"), 0.0, kLatest));
  node.users = ParseUsers(object, node.slots);
  node.lists_users = object.contains("users");
  return node;
}

boost::json::value ToUserData(const BackingNode& node, const std::string& owner) {
  boost::json::object object;
  object["owner"] = owner;
  object["label"] = node.label.str();
  object["slots"] = node.slots;
  object["failed"] = node.has_failed;
  object["launched"] = ToSeconds(node.launched);
  boost::json::object users;
  for (const auto& [slot, user] : node.users) users[std::to_string(slot)] = user.str();
  object["users"] = std::move(users);
  return boost::json::value(boost::json::serialize(object));
}

std::optional<BackingNode> BackingNodeInUse(const Node& record, const std::string& owner) {
  if (record.state != NodeState::kInUse) return std::nullopt;
  return ParseBackingNode(record.user_data.value(), owner);
}

bool RemoveUser(const NodeId& user, const std::string& owner, BackingNode& node, Node& record) {
  std::optional<int> slot = node.SlotOf(user);
  if (!slot) return false;
  node.users.erase(*slot);
  node.lists_users = true;
  record.user_data = ToUserData(node, owner);
  return true;
}

std::optional<Place> ParsePlace(const boost::json::value& driver_data) {
  if (!driver_data.is_object()) return std::nullopt;
  const boost::json::object& object = driver_data.as_object();
  Place place;
  place.backing_node = NodeId(TextOf(object, "backing_node"));
  place.slot = static_cast<int>(std::clamp<double>(NumberOf(object, "slot"), 0, kMaxSlots));
  if (place.backing_node.empty()) return std::nullopt;
  return place;
}

boost::json::value ToDriverData(const Place& place, const NodeId& user,
                                const std::map<std::string, std::string>& metadata) {
  boost::json::object object;
  boost::json::object& items = object["metadata"].emplace_object();
  for (const auto& [key, value] : metadata) items[key] = value;
  object["backing_node"] = place.backing_node.str();
  object["slot"] = place.slot;
  object["node"] = user.str();
  return object;
}

bool MayServe(const BackingNode& node, const MetastaticLabel* label, WallTime now) {
  if (node.has_failed || label == nullptr) return false;
  return !label->max_age || now - node.launched <= *label->max_age;
}

WallTime ReleaseTime(const BackingNode& node, const MetastaticLabel* label, WallTime idle_since) {
  if (node.has_failed || label == nullptr) return idle_since;
  WallTime usual = std::max(idle_since + label->grace_time, node.launched + label->min_retention_time);
  if (!label->max_age) return usual;
  return std::min(usual, std::max(idle_since, node.launched + *label->max_age));
}

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
