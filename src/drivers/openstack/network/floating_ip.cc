#include "drivers/openstack/network/floating_ip.h"

#include <algorithm>

#include "driver/cloud/adapter.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;
using driver::cloud::api::PercentEncoded;

namespace {

FloatingIp ReadFloatingIp(const json::object& entry) {
  FloatingIp ip;
  ip.id = TextIn(entry, "id");
  ip.address = TextIn(entry, "floating_ip_address");
  ip.status = TextIn(entry, "status");
  ip.port_id = TextIn(entry, "port_id");
  ip.fixed_ipv4 = TextIn(entry, "fixed_ip_address");
  return ip;
}

ApiCall NetworkCall(std::string path, std::string query) {
  ApiCall call;
  call.service = Service::kNetwork;
  call.path = std::move(path);
  call.query = std::move(query);
  return call;
}

}  // namespace

Task<FloatingIps> ListFloatingIps(Session& session) {
  std::string project = co_await session.ProjectId();
  ApiCall call = NetworkCall("/floatingips", project.empty() ? "" : "project_id=" + project);
  std::vector<FloatingIp> list = co_await List(session, std::move(call), "floatingips", &ReadFloatingIp);
  FloatingIps ips;
  for (FloatingIp& ip : list) {
    std::string id = ip.id;
    ips.insert_or_assign(std::move(id), std::move(ip));
  }
  co_return ips;
}

Task<std::vector<FloatingIp>> FindFloatingIpsOfPort(Session& session, std::string port_id) {
  ApiCall call = NetworkCall("/floatingips", "port_id=" + PercentEncoded(port_id));
  std::vector<FloatingIp> found = co_await List(session, std::move(call), "floatingips", &ReadFloatingIp);
  co_return found;
}

Task<> DeleteFloatingIp(Session& session, std::string id) {
  co_await session.Delete(Service::kNetwork, "/floatingips/" + id);
}

Port ReadPort(const json::object& entry) {
  Port port;
  port.id = TextIn(entry, "id");
  port.network_id = TextIn(entry, "network_id");
  port.mac = TextIn(entry, "mac_address");
  port.created_at = TextIn(entry, "created_at");
  port.device_owner = TextIn(entry, "device_owner");
  const json::array* fixed = ArrayIn(entry, "fixed_ips");
  if (fixed == nullptr) return port;
  for (const json::value& item : *fixed) {
    if (!item.is_object()) continue;
    std::string address = TextIn(item.as_object(), "ip_address");
    if (address.find('.') != std::string::npos) port.fixed_ipv4.push_back(std::move(address));
  }
  return port;
}

Task<std::vector<Port>> ListPortsOf(Session& session, std::string server_id) {
  ApiCall call = NetworkCall("/ports", "device_id=" + PercentEncoded(server_id));
  std::vector<Port> ports = co_await List(session, std::move(call), "ports", &ReadPort);
  co_return ports;
}

std::optional<FloatingTarget> ChooseTarget(std::vector<Port> ports, const NetworkRoles& roles) {
  if (ports.empty()) return std::nullopt;
  if (ports.size() > 1) {
    std::erase_if(ports, [&roles](const Port& port) { return port.network_id != roles.nat_destination; });
    if (ports.empty()) {
      throw Error(Verdict::kInvalid,
                  "the server has multiple ports, and none is on a network that is known as a valid NAT "
                  "destination; name one in clouds.yaml: networks: [{name: ..., nat_destination: true}]");
    }
    std::ranges::stable_sort(ports, std::greater<>(), &Port::created_at);
  }
  const Port& port = ports.front();
  if (port.fixed_ipv4.empty()) return std::nullopt;
  return FloatingTarget{port.id, port.mac, port.fixed_ipv4.front()};
}

Task<std::vector<FloatingAddress>> FindFloatingIpsOfPorts(Session& session, std::string server_id) {
  std::vector<FloatingAddress> found;
  std::vector<Port> ports = co_await ListPortsOf(session, std::move(server_id));
  for (const Port& port : ports) {
    std::string id = port.id;
    std::vector<FloatingIp> ips = co_await FindFloatingIpsOfPort(session, std::move(id));
    for (FloatingIp& ip : ips) found.push_back({std::move(ip), port.mac});
  }
  co_return found;
}

void AddTo(Server& server, const FloatingAddress& floating) {
  Address address;
  for (const Address& known : server.addresses) {
    if (known.text == floating.ip.fixed_ipv4) address.network = known.network;
  }
  address.text = floating.ip.address;
  address.mac = floating.mac;
  address.is_floating = true;
  server.addresses.push_back(std::move(address));
}

namespace {

// nullopt: the target has none.
Task<std::optional<FloatingIp>> FindBound(Session& session, FloatingTarget target) {
  std::vector<FloatingIp> ips = co_await FindFloatingIpsOfPort(session, target.port_id);
  auto found = std::ranges::find(ips, target.fixed_ipv4, &FloatingIp::fixed_ipv4);
  if (found == ips.end()) co_return std::nullopt;
  co_return *found;
}

}  // namespace

Task<FloatingIp> CreateFloatingIp(Session& session, std::string network_id, FloatingTarget target) {
  ApiCall call = NetworkCall("/floatingips", "");
  call.method = "POST";
  json::object body{{"floating_network_id", network_id},
                    {"port_id", target.port_id},
                    {"fixed_ip_address", target.fixed_ipv4}};
  call.body = json::object{{"floatingip", std::move(body)}};
  Outcome<ApiReply> reply = co_await Attempt(session.Call(std::move(call)));
  if (FailedWith(reply, Verdict::kConflict)) {
    std::optional<FloatingIp> bound = co_await FindBound(session, target);
    if (bound) co_return *bound;
  }
  if (!reply) reply.error().Rethrow();
  const json::object* entry = ObjectIn(reply->body, "floatingip");
  FloatingIp ip = entry == nullptr ? FloatingIp() : ReadFloatingIp(*entry);
  if (ip.id.empty() || ip.port_id != target.port_id) {
    throw driver::cloud::LaunchError(driver::cloud::LaunchError::Kind::kNetwork,
                                     "the cloud created a floating IP that is not bound as requested");
  }
  ip.fixed_ipv4 = target.fixed_ipv4;
  co_return ip;
}

}  // namespace nodepool::drivers::openstack
