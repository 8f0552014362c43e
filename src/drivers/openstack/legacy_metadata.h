#pragma once

#include <map>
#include <string>

namespace nodepool::drivers::openstack {

// Before 2016 a server's owner stood in one item, `nodepool`, as JSON
// (driver-openstack.md 19). The same metadata with today's items added, when that one
// is there and names a provider, and today's are not.
std::map<std::string, std::string> WithTodaysOwner(std::map<std::string, std::string> metadata);

// Whether only the old item tells the owner.
bool HasOnlyOldOwner(const std::map<std::string, std::string>& metadata);

}  // namespace nodepool::drivers::openstack
