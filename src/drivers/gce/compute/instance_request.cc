#include "drivers/gce/compute/instance_request.h"

#include <fmt/format.h>

#include "base/find_or_empty.h"
#include "base/json_entries.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/own_types.h"

namespace nodepool::drivers::gce {

namespace json = boost::json;
using driver::cloud::CreateParameters;

namespace {

json::object BootDisk(const Launch& launch, const std::string& image) {
  const GceLabel& label = launch.label;
  json::object parameters{
      {"sourceImage", image},
      {"diskType", fmt::format("zones/{}/diskTypes/{}", launch.zone(), label.volume_type)},
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

json::array MetadataItems(const Launch& launch) {
  json::array items;
  for (const auto& [key, value] : launch.marks) items.push_back(json::object{{"key", key}, {"value", value}});
  const GceCloudImage& image =
      FindOrEmpty(launch.cloud.config->cloud_images, launch.label.cloud_image.value_or(""));
  if (!image.key.empty()) {
    std::string line = image.connection.username.value_or("") + ":" + image.key;
    items.push_back(json::object{{"key", "ssh-keys"}, {"value", std::move(line)}});
  }
  return items;
}

json::object Labels(const Launch& launch) {
  json::object labels = ObjectOf(launch.label.labels);
  for (const auto& [key, value] : FittingLabels(launch.marks)) labels[key] = value;
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

Launch::Launch(GceCloud& in, const CreateParameters& wanted)
    : cloud(in),
      parameters(wanted),
      label(driver::cloud::As<GceLabel>(*wanted.label)),
      pool(driver::cloud::As<GcePool>(*wanted.pool)),
      marks(wanted.metadata),
      candidate(driver::cloud::ChosenOf(cloud.CandidatesOf(label), parameters)) {
  marks[driver::cloud::kAttemptKey] = parameters.attempt_mark;
  if (parameters.az) candidate.place = *parameters.az;
}

json::object InstanceRequest(const Launch& launch, const std::string& image) {
  const GceLabel& label = launch.label;
  const GcePool& pool = launch.pool;
  json::object body;
  body["name"] = launch.name();
  body["machineType"] = fmt::format("zones/{}/machineTypes/{}", launch.zone(), launch.candidate.type);
  body["disks"] = json::array{BootDisk(launch, image)};
  body["networkInterfaces"] = json::array{NetworkInterface(pool, launch.cloud.config->region)};
  body["serviceAccounts"] = Accounts(pool);
  body["metadata"] = json::object{{"items", MetadataItems(launch)}};
  body["labels"] = Labels(launch);
  if (label.use_spot) body["scheduling"] = SpotScheduling(label);
  if (!pool.tags.empty())
    body["tags"] = json::object{{"items", json::array(pool.tags.begin(), pool.tags.end())}};
  return body;
}

}  // namespace nodepool::drivers::gce
