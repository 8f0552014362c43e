#include "drivers/openstack/compute/server.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cctype>
#include <optional>

#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/json_calls.h"
#include "driver/cloud/metadata.h"
#include "drivers/openstack/api/session.h"

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

namespace {

constexpr const char* kOldItem = "nodepool";
constexpr std::size_t kNodeIdDigits = 10;

// nullopt: it is not a JSON object.
std::optional<boost::json::object> OldOwner(const std::map<std::string, std::string>& metadata) {
  boost::system::error_code error;
  boost::json::value owner = boost::json::parse(metadata.at(kOldItem), error);
  if (error || !owner.is_object()) return std::nullopt;
  return owner.as_object();
}

}  // namespace

bool HasOnlyOldOwner(const std::map<std::string, std::string>& metadata) {
  return metadata.contains(kOldItem) && !metadata.contains(driver::cloud::kProviderKey);
}

std::map<std::string, std::string> WithCurrentOwnerKeys(std::map<std::string, std::string> metadata) {
  if (!HasOnlyOldOwner(metadata)) return metadata;
  std::optional<boost::json::object> owner = OldOwner(metadata);
  if (!owner) return metadata;
  std::string provider = TextIn(*owner, "provider_name");
  std::string node = TextIn(*owner, "node_id");
  if (provider.empty()) return metadata;
  metadata[driver::cloud::kProviderKey] = provider;
  if (!node.empty()) metadata[driver::cloud::kNodeKey] = node;
  return metadata;
}

bool HasUnreadableOwner(const std::map<std::string, std::string>& metadata) {
  return HasOnlyOldOwner(metadata) && !OldOwner(metadata);
}

std::map<std::string, std::string> WithWholeNodeId(std::map<std::string, std::string> metadata) {
  auto node = metadata.find(driver::cloud::kNodeKey);
  if (node == metadata.end()) return metadata;
  std::string& id = node->second;
  bool is_number = !id.empty() && id.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && id.size() < kNodeIdDigits) id.insert(0, kNodeIdDigits - id.size(), '0');
  return metadata;
}

using driver::cloud::CreateParameters;

namespace {

// Nova accepts only text.
std::string PropertyText(const json::value& value) {
  return value.is_string() ? std::string(value.as_string()) : json::serialize(value);
}

void AddImage(const OpenstackLabel& label, const ServerParts& parts, json::object& server) {
  server["imageRef"] = label.boot_from_volume ? "" : parts.image_id;
  if (!label.boot_from_volume) return;
  json::object device{{"boot_index", "0"},
                      {"delete_on_termination", true},
                      {"destination_type", "volume"},
                      {"source_type", "image"},
                      {"uuid", parts.image_id},
                      {"volume_size", std::to_string(label.volume_size)}};
  json::array devices;
  devices.push_back(std::move(device));
  server["block_device_mapping_v2"] = std::move(devices);
}

void AddNetworks(const ServerParts& parts, json::object& server) {
  if (parts.network_ids.empty()) {
    if (parts.takes_auto_network) server["networks"] = "auto";
    return;
  }
  json::array networks;
  for (const std::string& id : parts.network_ids) networks.push_back(json::object{{"uuid", id}});
  server["networks"] = std::move(networks);
}

}  // namespace

const OpenstackLabel& LabelOf(const CreateParameters& parameters) {
  return driver::cloud::As<OpenstackLabel>(*parameters.label);
}

json::object ServerBody(const CreateParameters& parameters, const ServerParts& parts,
                        std::map<std::string, std::string> metadata) {
  const OpenstackLabel& label = LabelOf(parameters);
  const auto& pool = driver::cloud::As<OpenstackPool>(*parameters.pool);
  json::object server;
  server["name"] = parameters.hostname;
  AddImage(label, parts, server);
  server["flavorRef"] = parts.flavor_id;
  if (parameters.az) server["availability_zone"] = *parameters.az;
  if (label.key_name) server["key_name"] = *label.key_name;
  json::array groups;
  for (const std::string& group : pool.security_groups) groups.push_back(json::object{{"name", group}});
  if (!groups.empty()) server["security_groups"] = std::move(groups);
  if (label.userdata && !label.userdata->empty()) server["user_data"] = Base64(*label.userdata);
  if (parts.config_drive) server["config_drive"] = true;
  json::object items;
  for (auto& [key, value] : metadata) items[key] = std::move(value);
  server["metadata"] = std::move(items);
  AddNetworks(parts, server);
  server["min_count"] = 1;
  server["max_count"] = 1;
  return server;
}

std::map<std::string, std::string> ServerMetadata(const CreateParameters& parameters,
                                                  const ServerParts& parts, const log::Logger& logger) {
  const OpenstackLabel& label = LabelOf(parameters);
  const std::string& provider = parameters.metadata.at(driver::cloud::kProviderKey);
  std::map<std::string, std::string> metadata;
  metadata["groups"] = provider + "," + parts.image_name + "," + label.name.value;
  for (const auto& [key, value] : label.instance_properties) metadata[std::string(key)] = PropertyText(value);
  for (const auto& [key, text] : label.dynamic_instance_properties) {
    try {
      metadata[key] = driver::cloud::api::FillTemplate(text, parameters.request_id, parameters.request);
    } catch (const Error& error) {
      logger.Error("The dynamic instance property {} of label {} is left out: {}", key, label.name,
                   error.message());
    }
  }
  metadata["nodepool_image_name"] = parts.image_name;
  for (const auto& [key, value] : parameters.metadata) metadata[key] = value;
  metadata[driver::cloud::kAttemptKey] = parameters.attempt_mark;
  return metadata;
}

}  // namespace nodepool::drivers::openstack
