#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "drivers/metastatic/metastatic_config.h"
#include "model/node.h"

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

}  // namespace nodepool::drivers
