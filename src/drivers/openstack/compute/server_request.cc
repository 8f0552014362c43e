#include "drivers/openstack/compute/server_request.h"

#include <boost/json/serialize.hpp>

#include "base/encoding.h"
#include "driver/cloud/api/request_template.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/own_types.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;
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
