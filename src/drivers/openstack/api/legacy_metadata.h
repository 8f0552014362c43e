#pragma once

#include <map>
#include <string>

namespace nodepool::drivers::openstack {

// Before 2016 a server's owner stood in one item, `nodepool`, as JSON
// (driver-openstack.md 19). The same metadata with today's items added, when that one
// is there and names a provider, and today's are not.
std::map<std::string, std::string> WithTodaysOwner(std::map<std::string, std::string> metadata);

// Whether only the old item names the owner.
bool HasOnlyOldOwner(const std::map<std::string, std::string>& metadata);
// Whether that item is no JSON object, so that the server's owner is unknown.
bool HasUnreadableOwner(const std::map<std::string, std::string>& metadata);

// The same with the node's id as ids are written today, with ten digits: it used to be a
// plain number (operations.md 12.4). Not for deciding about deletions (D-69).
std::map<std::string, std::string> WithWholeNodeId(std::map<std::string, std::string> metadata);

}  // namespace nodepool::drivers::openstack
