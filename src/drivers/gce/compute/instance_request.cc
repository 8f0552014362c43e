#include "drivers/gce/compute/instance_request.h"

#include <fmt/format.h>

#include "base/find_or_empty.h"
#include "base/json_entries.h"
#include "driver/cloud/metadata.h"

namespace nodepool::drivers::gce {

namespace json = boost::json;
using driver::cloud::CreateParameters;

namespace {

json::object BootDisk(const GceLabel& label, const std::string& zone, const std::string& image) {
  json::object parameters{{"sourceImage", image},
                          {"diskType", fmt::format("zones/{}/diskTypes/{}", zone, label.volume_type)},
                          {"diskSizeGb", std::to_string(label.volume_size)}};
  return {{"boot", true}, {"autoDelete", true}, {"initializeParams", std::move(parameters)}};
}

json::object NetworkInterface(const GcePool& pool, const std::string& region) {
  json::object interface;
  if (pool.network || !pool.subnetwork)
    interface["network"] = "global/networks/" + pool.network.value_or("default");
  if (pool.subnetwork)
    interface["subnetwork"] = fmt::format("regions/{}/subnetworks/{}", region, *pool.subnetwork);
  if (pool.public_ipv4) {
    json::object access{{"type", "ONE_TO_ONE_NAT"}, {"name", "External NAT"}};
    interface["accessConfigs"] = json::array{std::move(access)};
  }
  if (pool.public_ipv6) {
    json::object access{{"type", "DIRECT_IPV6"}, {"networkTier", "PREMIUM"}};
    interface["stackType"] = "IPV4_IPV6";
    interface["ipv6AccessConfigs"] = json::array{std::move(access)};
  }
  return interface;
}

json::array Accounts(const GcePool& pool) {
  if (!pool.service_account) return {};
  json::array scopes(pool.service_account->scopes.begin(), pool.service_account->scopes.end());
  return {json::object{{"email", pool.service_account->email}, {"scopes", std::move(scopes)}}};
}

// Whose the machine is, and what tells this launch from others.
std::map<std::string, std::string> MarksOn(const CreateParameters& parameters) {
  std::map<std::string, std::string> marks = parameters.metadata;
  marks[driver::cloud::kAttemptKey] = parameters.attempt_mark;
  return marks;
}

json::array MetadataItems(const Wanted& wanted) {
  json::array items;
  for (const auto& [key, value] : MarksOn(wanted.parameters))
    items.push_back(json::object{{"key", key}, {"value", value}});
  const GceCloudImage& image = FindOrEmpty(wanted.config.cloud_images, wanted.label.cloud_image.value_or(""));
  if (!image.key.empty()) {
    std::string line = image.connection.username.value_or("") + ":" + image.key;
    items.push_back(json::object{{"key", "ssh-keys"}, {"value", std::move(line)}});
  }
  return items;
}

json::object Labels(const Wanted& wanted) {
  json::object labels = ObjectOf(wanted.label.labels);
  for (const auto& [key, value] : FittingLabels(MarksOn(wanted.parameters))) labels[key] = value;
  return labels;
}

// A stopped instance would keep its disk, its name and its quota.
json::object SpotScheduling(const GceLabel& label) {
  json::object scheduling{{"provisioningModel", "SPOT"},
                          {"instanceTerminationAction", "DELETE"},
                          {"onHostMaintenance", "TERMINATE"},
                          {"automaticRestart", false}};
  if (label.spot_notice > 0) {
    json::object notice{{"seconds", std::to_string(label.spot_notice)}};
    scheduling["preemptionNoticeDuration"] = std::move(notice);
  }
  return scheduling;
}

}  // namespace

Candidate Wanted::Chosen() const {
  Candidate chosen =
      driver::cloud::ChosenOf(driver::cloud::CandidatesOf(label.instance_types, config.zones), parameters);
  if (parameters.az) chosen.place = *parameters.az;
  return chosen;
}

json::object InstanceRequest(const Wanted& wanted, const std::string& image) {
  const GceLabel& label = wanted.label;
  const GcePool& pool = wanted.pool;
  const auto& [type, zone] = wanted.candidate;
  json::object body;
  body["name"] = wanted.parameters.hostname;
  body["machineType"] = fmt::format("zones/{}/machineTypes/{}", zone, type);
  body["disks"] = json::array{BootDisk(label, zone, image)};
  body["networkInterfaces"] = json::array{NetworkInterface(pool, wanted.config.region)};
  body["serviceAccounts"] = Accounts(pool);
  body["metadata"] = json::object{{"items", MetadataItems(wanted)}};
  body["labels"] = Labels(wanted);
  if (label.use_spot) body["scheduling"] = SpotScheduling(label);
  if (!pool.tags.empty())
    body["tags"] = json::object{{"items", json::array(pool.tags.begin(), pool.tags.end())}};
  return body;
}

}  // namespace nodepool::drivers::gce
