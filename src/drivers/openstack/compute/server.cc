#include "drivers/openstack/compute/server.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "drivers/openstack/api/faults.h"
#include "drivers/openstack/api/paging.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

// The newest microversion that the calls here support (driver-openstack.md 5.3).
constexpr VersionNumber kNewest{2, 96};

std::vector<Address> ReadAddresses(const json::object& entry) {
  std::vector<Address> addresses;
  const json::object* networks = ObjectIn(entry, "addresses");
  if (networks == nullptr) return addresses;
  for (const auto& [network, list] : *networks) {
    if (!list.is_array()) continue;
    for (const json::value& item : list.as_array()) {
      if (!item.is_object()) continue;
      const json::object& fields = item.as_object();
      Address address;
      address.network = std::string(network);
      address.version = NumberIn(fields, "version") == 6 ? 6 : 4;
      address.text = TextIn(fields, "addr");
      address.mac = TextIn(fields, "OS-EXT-IPS-MAC:mac_addr");
      address.is_floating = TextIn(fields, "OS-EXT-IPS:type") == "floating";
      if (!address.text.empty()) addresses.push_back(std::move(address));
    }
  }
  return addresses;
}

void ReadFlavor(const json::object& entry, Server& server) {
  const json::object* flavor = ObjectIn(entry, "flavor");
  if (flavor == nullptr) return;
  server.flavor_id = TextIn(*flavor, "id");
  if (!flavor->contains("vcpus")) return;
  server.vcpus = static_cast<int>(NumberIn(*flavor, "vcpus"));
  server.ram = static_cast<int>(NumberIn(*flavor, "ram"));
}

}  // namespace

Server ReadServer(const json::object& entry) {
  Server server;
  server.id = TextIn(entry, "id");
  server.name = TextIn(entry, "name");
  server.status = Upper(TextIn(entry, "status"));
  server.task = TextIn(entry, "OS-EXT-STS:task_state");
  if (const json::object* fault = ObjectIn(entry, "fault")) server.fault = TextIn(*fault, "message");
  if (const json::object* metadata = ObjectIn(entry, "metadata")) {
    for (const auto& [key, value] : *metadata) server.metadata[std::string(key)] = TextIn(*metadata, key);
  }
  server.addresses = ReadAddresses(entry);
  server.access_ipv4 = TextIn(entry, "accessIPv4");
  server.access_ipv6 = TextIn(entry, "accessIPv6");
  server.host_id = TextIn(entry, "hostId");
  server.zone = TextIn(entry, "OS-EXT-AZ:availability_zone");
  ReadFlavor(entry, server);
  if (const json::array* volumes = ArrayIn(entry, "os-extended-volumes:volumes_attached")) {
    for (const json::value& volume : *volumes) {
      if (volume.is_object()) server.volumes.push_back(TextIn(volume.as_object(), "id"));
    }
  }
  return server;
}

Task<Servers> ListServers(Session& session) {
  ApiCall call;
  call.path = "/servers/detail";
  std::vector<Server> list = co_await List(session, std::move(call), "servers", &ReadServer);
  Servers servers;
  for (Server& server : list) {
    std::string id = server.id;
    servers.insert_or_assign(std::move(id), std::move(server));
  }
  co_return servers;
}

Task<std::string> CreateServer(Session& session, json::object body) {
  ApiCall call;
  call.method = "POST";
  call.path = "/servers";
  call.microversion = kNewest;
  call.body = json::object{{"server", std::move(body)}};
  ApiReply reply = co_await session.Call(std::move(call));
  const json::object* server = ObjectIn(reply.body, "server");
  std::string id = server == nullptr ? "" : TextIn(*server, "id");
  if (id.empty()) throw Error(Verdict::kRetry, "the cloud accepted a server and returned no id");
  co_return id;
}

Task<bool> DeleteServer(Session& session, std::string id) {
  return session.Delete(Service::kCompute, "/servers/" + id, kNewest);
}

Task<std::string> ConsoleOutput(Session& session, std::string id) {
  ApiCall call;
  call.method = "POST";
  call.path = "/servers/" + id + "/action";
  call.microversion = kNewest;
  call.body = json::object{{"os-getConsoleOutput", json::object()}};
  call.may_be_repeated = true;
  ApiReply reply = co_await session.Call(std::move(call));
  co_return reply.body.is_object() ? TextIn(reply.body.as_object(), "output") : "";
}

}  // namespace nodepool::drivers::openstack
