#include "drivers/openstack/compute/delete_machine.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::drivers::openstack {

using driver::cloud::MachineReport;

namespace {

// The number of consecutive lists with the server in ERROR and nova idle that prove a failed deletion.
constexpr int kListsOfFailure = 3;

bool MayHaveFloatingIps(const Cloud& cloud) {
  if (!cloud.session.cloud().has_floating_ips) return false;
  return std::ranges::any_of(cloud.config->pools, [](const auto& entry) {
    return dynamic_cast<const OpenstackPool&>(*entry.second).auto_floating_ip;
  });
}

// Finds them by the server's ports: an address that nova shows may belong to another server by now. If nova
// shows none, it may hide them (driver-openstack.md 9.2).
Task<std::vector<std::string>> FindIdsOf(Cloud& cloud, const Server& server) {
  std::vector<std::string> ids;
  std::vector<FloatingAddress> found;
  if (std::ranges::any_of(server.addresses, &Address::is_floating)) {
    found = co_await FindFloatingIpsOfPorts(cloud.session, server.id);
  } else if (server.status == "ACTIVE") {
    found = co_await FindHiddenFloatingIps(cloud, server);
  }
  for (const FloatingAddress& floating : found) ids.push_back(floating.ip.id);
  co_return ids;
}

Task<> DeleteFloatingIps(Cloud& cloud, MachineReport& machine, std::string server_id) {
  std::vector<std::string> ids;
  if (auto known = cloud.floating_ip_of.find(server_id); known != cloud.floating_ip_of.end()) {
    ids.push_back(known->second);
  } else {
    auto listing = co_await cloud.servers.NotOlderThan(std::chrono::seconds(2));
    auto server = listing.items->find(server_id);
    if (server == listing.items->end()) co_return;
    ids = co_await FindIdsOf(cloud, server->second);
  }
  for (const std::string& ip_id : ids) {
    machine.SetState("deleting floating ip");
    std::string id = ip_id;
    co_await DeleteFloatingIp(cloud.session, std::move(id));
  }
  cloud.floating_ip_of.erase(server_id);
}

// A predicate for consecutive lists: whether the server is gone. Error(kRetry): the cloud could not delete
// it.
class IsGone {
 public:
  explicit IsGone(std::string id) : id_(std::move(id)) {}

  bool operator()(const Servers& servers) {
    auto found = servers.find(id_);
    if (found == servers.end() || found->second.is_deleted()) return true;
    const Server& server = found->second;
    bool has_failed = server.status == "ERROR" && server.task.empty();
    failures_ = has_failed ? failures_ + 1 : 0;
    if (failures_ < kListsOfFailure) return false;
    throw Error(Verdict::kRetry, fmt::format("the cloud could not delete server {}: {}", id_,
                                             server.fault.empty() ? "it is in status ERROR" : server.fault));
  }

 private:
  std::string id_;
  int failures_ = 0;
};

}  // namespace

Task<> DeleteMachine(Cloud& cloud, MachineReport& machine, std::string id) {
  if (MayHaveFloatingIps(cloud)) co_await DeleteFloatingIps(cloud, machine, id);
  machine.SetState("delete server");
  bool was_there = co_await DeleteServer(cloud.session, id);
  if (!was_there) co_return;
  machine.SetState("deleting server");
  IsGone is_gone(id);
  co_await cloud.servers.Until(is_gone);
}

}  // namespace nodepool::drivers::openstack
