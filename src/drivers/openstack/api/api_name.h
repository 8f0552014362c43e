#pragma once

#include <string>

namespace nodepool::drivers::openstack {

// What metrics call an API call, by its path below the service's version: "/servers/ID"
// is "server", "/servers/ID/action" "server_action", "/servers/detail"
// "servers_detail", "" "discovery" (driver-openstack.md 18).
std::string ApiName(const std::string& path);

}  // namespace nodepool::drivers::openstack
