#pragma once

#include <map>
#include <string>

namespace nodepool::drivers::openstack {

// Before 2016 a server's owner was in one item, `nodepool`, as JSON (driver-openstack.md 19). Returns the
// metadata with the current items added, if the old item names a provider and there are no current items.
std::map<std::string, std::string> WithCurrentOwnerKeys(std::map<std::string, std::string> metadata);

// Whether only the old item names the owner.
bool HasOnlyOldOwner(const std::map<std::string, std::string>& metadata);
// Whether the old item is not a JSON object, so that the server's owner is unknown.
bool HasUnreadableOwner(const std::map<std::string, std::string>& metadata);

// The same with the node's id in the current form, with ten digits: it used to be a plain number
// (operations.md 12.4). Not for deciding about deletions (D-69).
std::map<std::string, std::string> WithWholeNodeId(std::map<std::string, std::string> metadata);

}  // namespace nodepool::drivers::openstack
