#include "drivers/gce/compute/instance_request.h"

#include <fmt/format.h>

#include <algorithm>

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

json::array MetadataItems(const CreateParameters& parameters, const GceConfig& config) {
  json::array items;
  for (const auto& [key, value] : MarksOn(parameters))
    items.push_back(json::object{{"key", key}, {"value", value}});
  const std::optional<std::string>& name = LabelOf(parameters).cloud_image;
  auto image = name ? config.cloud_images.find(*name) : config.cloud_images.end();
  if (image != config.cloud_images.end() && !image->second.key.empty()) {
    std::string line = image->second.connection.username.value_or("") + ":" + image->second.key;
    items.push_back(json::object{{"key", "ssh-keys"}, {"value", std::move(line)}});
  }
  return items;
}

json::object Labels(const CreateParameters& parameters) {
  json::object labels;
  for (const auto& [key, value] : LabelOf(parameters).labels) labels[key] = value;
  for (const auto& [key, value] : FittingLabels(MarksOn(parameters))) labels[key] = value;
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

std::vector<Candidate> CandidatesOf(const GceLabel& label, const GceConfig& config) {
  std::vector<Candidate> candidates;
  for (const std::string& type : label.instance_types) {
    for (const std::string& zone : config.zones) candidates.push_back({type, zone});
  }
  return candidates;
}

std::vector<std::string> CandidateNames(const GceLabel& label, const GceConfig& config) {
  std::vector<std::string> names;
  std::vector<Candidate> candidates = CandidatesOf(label, config);
  if (candidates.size() < 2) return names;
  for (const Candidate& candidate : candidates) {
    names.push_back(fmt::format("{}{} in {}", candidate.type, label.use_spot ? " spot" : "", candidate.zone));
  }
  return names;
}

const GceLabel& LabelOf(const CreateParameters& parameters) {
  return dynamic_cast<const GceLabel&>(*parameters.label);
}

const GcePool& PoolOf(const CreateParameters& parameters) {
  return dynamic_cast<const GcePool&>(*parameters.pool);
}

Candidate ChosenOf(const CreateParameters& parameters, const GceConfig& config) {
  std::vector<Candidate> candidates = CandidatesOf(LabelOf(parameters), config);
  Candidate chosen = candidates.at(std::min(parameters.candidate, candidates.size() - 1));
  if (parameters.az) chosen.zone = *parameters.az;
  return chosen;
}

json::object InstanceRequest(const CreateParameters& parameters, const GceConfig& config,
                             const std::string& image) {
  const GceLabel& label = LabelOf(parameters);
  const GcePool& pool = PoolOf(parameters);
  const Candidate chosen = ChosenOf(parameters, config);
  json::object body;
  body["name"] = parameters.hostname;
  body["machineType"] = fmt::format("zones/{}/machineTypes/{}", chosen.zone, chosen.type);
  body["disks"] = json::array{BootDisk(label, chosen.zone, image)};
  body["networkInterfaces"] = json::array{NetworkInterface(pool, config.region)};
  body["serviceAccounts"] = Accounts(pool);
  body["metadata"] = json::object{{"items", MetadataItems(parameters, config)}};
  body["labels"] = Labels(parameters);
  if (label.use_spot) body["scheduling"] = SpotScheduling(label);
  if (!pool.tags.empty())
    body["tags"] = json::object{{"items", json::array(pool.tags.begin(), pool.tags.end())}};
  return body;
}

}  // namespace nodepool::drivers::gce
