#include "drivers/openstack/network/housekeeping.h"

#include "async/task.h"
#include "base/scope_exit.h"
#include "driver/provider_environment.h"
#include "drivers/openstack/api/cloud.h"
#include "drivers/openstack/network/networks.h"

namespace nodepool::drivers::openstack {

namespace {

// A server's port, or one that lost its owner.
bool IsOfServer(const Port& port) {
  return port.device_owner.empty() || port.device_owner.starts_with("compute:");
}

}  // namespace

void Housekeeping::Start() {
  if (is_running_) return;
  is_running_ = true;
  tasks_.Spawn("housekeeping of provider " + config_.name.str(), Run());
}

Task<> Housekeeping::Run() {
  ScopeExit end([this] { is_running_ = false; });
  bool has_network = co_await session_.Has(Service::kNetwork);
  if (!has_network) co_return;
  if (config_.port_cleanup_interval > Duration::zero()) co_await CleanPorts();
  if (config_.clean_floating_ips) co_await CleanFloatingIps();
}

Task<std::set<std::string>> Housekeeping::PortsThatAreDown() {
  std::string project = co_await session_.ProjectId();
  ApiCall call;
  call.service = Service::kNetwork;
  call.path = "/ports";
  call.query = "status=DOWN" + (project.empty() ? "" : "&project_id=" + project);
  std::vector<Port> ports = co_await List(session_, std::move(call), "ports", &ReadPort);
  std::set<std::string> ids;
  for (const Port& port : ports) {
    if (IsOfServer(port)) ids.insert(port.id);
  }
  co_return ids;
}

// A port of a starting server is down, too: only a port that is down in two consecutive sweeps has leaked.
Task<> Housekeeping::CleanPorts() {
  SteadyTime now = session_.loop().SteadyNow();
  if (swept_ && now - *swept_ < config_.port_cleanup_interval) co_return;
  std::set<std::string> down = co_await PortsThatAreDown();
  std::set<std::string> leaked;
  for (const std::string& id : down) {
    if (swept_ && suspects_.contains(id)) leaked.insert(id);
  }
  driver::LeakTally tally(observer_, config_.name);
  for (const std::string& id : leaked) {
    Outcome<bool> removed = co_await Attempt(session_.Delete(Service::kNetwork, "/ports/" + id));
    if (!removed) {
      logger_.Error("Leaked port {} could not be removed: {}", id, removed.error().message());
      continue;
    }
    down.erase(id);
    if (!*removed) continue;
    logger_.Warning("Removed leaked port {} of provider {}", id, config_.name);
    tally.Add("ports");
  }
  suspects_ = std::move(down);
  swept_ = now;
}

Task<> Housekeeping::CleanFloatingIps() {
  FloatingIps ips = co_await ListFloatingIps(session_);
  driver::LeakTally tally(observer_, config_.name);
  for (const auto& [ip_id, ip] : ips) {
    if (!ip.port_id.empty()) continue;
    std::string id = ip_id;
    Outcome<> removed = co_await Attempt(DeleteFloatingIp(session_, std::move(id)));
    if (!removed) {
      logger_.Error("Unused floating IP {} could not be removed: {}", ip.address, removed.error().message());
      continue;
    }
    logger_.Warning("Removed unused floating IP {} of provider {}", ip.address, config_.name);
    tally.Add("floatingips");
  }
}

}  // namespace nodepool::drivers::openstack
