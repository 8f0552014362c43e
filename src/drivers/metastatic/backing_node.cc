#include "drivers/metastatic/backing_node.h"

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

}  // namespace nodepool::drivers
