#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "drivers/metastatic/metastatic_config.h"

namespace nodepool::drivers {

// What the owner of a backing node keeps in the node's user_data (drivers.md 8.2).
struct BackingNode {
  LabelName label;  // of the nodes that its slots are handed out as
  int slots = 1;
  bool has_failed = false;  // gives out no more slots
  WallTime launched{};      // when it was requested
  // Who has which slot. Ours beside the keys of the field: it makes taking a slot one
  // write that another launcher cannot overlook (D-84).
  std::map<int, NodeId> users;
  bool lists_users = true;  // false: written by a program that leaves that to the users' records

  // The lowest free one.
  std::optional<int> FreeSlot() const;
  std::optional<int> SlotOf(const NodeId& user) const;
};

// "NodePool:metastatic:<provider>".
std::string OwnerName(const ProviderName& provider);

// Nothing when it is not this owner's, or no such record at all.
std::optional<BackingNode> ParseBackingNode(const boost::json::value& user_data, const std::string& owner);
boost::json::value ToUserData(const BackingNode& node, const std::string& owner);

// A user node's own account of its place, in its driver_data; also what it looks like
// before there is one.
struct Place {
  NodeId backing_node;
  int slot = 0;
};
std::optional<Place> ParsePlace(const boost::json::value& driver_data);
boost::json::value ToDriverData(const Place& place, const NodeId& user,
                                const std::map<std::string, std::string>& metadata);

// Whether it may give out a slot. `label` is its label's configuration; null: gone.
bool MayServe(const BackingNode& node, const MetastaticLabel* label, WallTime now);

// When a node that nobody has used since `idle_since` is to be released (drivers.md 8.6).
WallTime ReleaseTime(const BackingNode& node, const MetastaticLabel* label, WallTime idle_since);

}  // namespace nodepool::drivers
