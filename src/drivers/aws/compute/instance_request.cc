#include "drivers/aws/compute/instance_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/encoding.h"
#include "base/text.h"
#include "driver/cloud/api/request_template.h"
#include "driver/cloud/own_types.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/launch_templates.h"
#include "drivers/aws/config/tag_settings.h"

namespace nodepool::drivers::aws {

std::vector<Candidate> CandidatesOf(const AwsLabel& label, const AwsPool& pool) {
  return driver::cloud::CandidatesOf(label.instance_types, pool.places);
}

std::vector<std::string> CandidateNames(const AwsLabel& label, const AwsPool& pool) {
  if (label.fleet_strategy) return {};
  return driver::cloud::NamesOf<AwsPlace>(
      CandidatesOf(label, pool), label.use_spot,
      [](const AwsPlace& place) { return place.subnet_id ? *place.subnet_id : place.zone.value_or(""); });
}

using driver::cloud::CreateParameters;

namespace {

void AddInterface(const AwsPool& pool, const AwsPlace& place, Query& query) {
  query.Add("NetworkInterface.1.DeviceIndex", 0);
  query.Add("NetworkInterface.1.AssociatePublicIpAddress", pool.public_ipv4);
  if (pool.security_group_id) query.Add("NetworkInterface.1.SecurityGroupId.1", *pool.security_group_id);
  if (place.subnet_id) query.Add("NetworkInterface.1.SubnetId", *place.subnet_id);
  if (pool.public_ipv6) query.Add("NetworkInterface.1.Ipv6AddressCount", 1);
}

void AddSpot(Query& query) {
  query.Add("InstanceMarketOptions.MarketType", "spot");
  query.Add("InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time");
  query.Add("InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate");
}

}  // namespace

const AwsLabel& LabelOf(const CreateParameters& parameters) {
  return driver::cloud::As<AwsLabel>(*parameters.label);
}

const AwsPool& PoolOf(const CreateParameters& parameters) {
  return driver::cloud::As<AwsPool>(*parameters.pool);
}

Candidate ChosenOf(const CreateParameters& parameters) {
  return CandidatesOf(LabelOf(parameters), PoolOf(parameters)).at(parameters.candidate);
}

std::map<std::string, std::string> InstanceTags(const CreateParameters& parameters,
                                                const log::Logger& logger) {
  const AwsLabel& label = LabelOf(parameters);
  std::map<std::string, std::string> tags = label.tags;
  for (const auto& [key, text] : label.dynamic_tags) {
    try {
      tags[key] = driver::cloud::api::FillTemplate(text, parameters.request_id, parameters.request);
    } catch (const Error& error) {
      logger.Error("The dynamic tag {} of label {} is left out: {}", key, label.name, error.message());
    }
  }
  for (const auto& [key, value] : parameters.metadata) tags[key] = value;
  tags[kNameTag] = parameters.hostname;
  for (auto& [key, value] : tags) value = CutToCharacters(value, kMaxTagValue);
  return tags;
}

Query RunInstances(const CreateParameters& parameters, const MachineImage& image,
                   const std::map<std::string, std::string>& tags, const std::string& token,
                   const std::string& host) {
  const AwsLabel& label = LabelOf(parameters);
  const Candidate chosen = ChosenOf(parameters);
  Query query("RunInstances");
  query.Add("ImageId", image.id).Add("InstanceType", chosen.type);
  query.Add("MinCount", 1).Add("MaxCount", 1).Add("ClientToken", token);
  if (label.key_name) query.Add("KeyName", *label.key_name);
  query.Add("EbsOptimized", label.ebs_optimized);
  AddInterface(PoolOf(parameters), chosen.place, query);
  if (label.userdata && !label.userdata->empty()) query.Add("UserData", Base64(*label.userdata));
  if (label.profile_name) query.Add("IamInstanceProfile.Name", *label.profile_name);
  if (label.profile_arn) query.Add("IamInstanceProfile.Arn", *label.profile_arn);
  if (const BlockDevice* root = image.Root()) AddRootVolume(*root, label.volume, "", query);
  if (label.use_spot) AddSpot(query);
  if (label.imdsv2) {
    query.Add("MetadataOptions.HttpTokens", *label.imdsv2).Add("MetadataOptions.HttpEndpoint", "enabled");
  }
  if (chosen.place.zone) query.Add("Placement.AvailabilityZone", *chosen.place.zone);
  if (!host.empty()) {
    query.Add("Placement.Tenancy", "host").Add("Placement.HostId", host).Add("Placement.Affinity", "host");
  }
  AddTagSpecifications({"instance", "volume"}, tags, query);
  return query;
}

void AddRootVolume(const BlockDevice& device, const RootVolume& wanted, const std::string& prefix,
                   Query& query) {
  static const std::set<std::string> with_iops = {"gp3", "io1", "io2"};
  const std::string type = wanted.type.value_or(device.type);
  bool is_same_type = type == device.type;
  std::optional<int> size = wanted.size ? wanted.size : device.size;
  std::optional<int> iops = wanted.iops;
  std::optional<int> throughput = wanted.throughput;
  if (!iops && (is_same_type || with_iops.contains(type))) iops = device.iops;
  if (!throughput && (is_same_type || type == "gp3")) throughput = device.throughput;
  // EC2 reports the operations of every volume, but takes them for these types only.
  if (!wanted.iops && !with_iops.contains(type)) iops.reset();
  if (!wanted.throughput && type != "gp3") throughput.reset();
  query.Add(prefix + "BlockDeviceMapping.1.DeviceName", device.name);
  const std::string ebs = prefix + "BlockDeviceMapping.1.Ebs.";
  query.Add(ebs + "DeleteOnTermination", true);
  if (!device.snapshot_id.empty()) query.Add(ebs + "SnapshotId", device.snapshot_id);
  if (size) query.Add(ebs + "VolumeSize", *size);
  if (!type.empty()) query.Add(ebs + "VolumeType", type);
  if (iops) query.Add(ebs + "Iops", *iops);
  if (throughput) query.Add(ebs + "Throughput", *throughput);
}

void AddTagSpecifications(const std::vector<std::string>& resources,
                          const std::map<std::string, std::string>& tags, Query& query) {
  int specification = 0;
  for (const std::string& resource : resources) {
    std::string prefix = fmt::format("TagSpecification.{}.", ++specification);
    query.Add(prefix + "ResourceType", resource);
    int number = 0;
    for (const auto& [key, value] : tags) {
      std::string tag = fmt::format("{}Tag.{}.", prefix, ++number);
      query.Add(tag + "Key", key);
      query.Add(tag + "Value", value);
    }
  }
}

namespace {

constexpr std::size_t kMaxFleetMessage = 600;

void AddOverride(const Candidate& candidate, const MachineImage& image, const std::string& name,
                 Query& query) {
  query.Add(name + "ImageId", image.id).Add(name + "InstanceType", candidate.type);
  if (candidate.place.subnet_id) {
    query.Add(name + "SubnetId", *candidate.place.subnet_id);
  } else if (candidate.place.zone) {
    query.Add(name + "AvailabilityZone", *candidate.place.zone);
  }
}

}  // namespace

Query CreateFleet(const CreateParameters& parameters, const MachineImage& image,
                  const std::string& template_name, const std::map<std::string, std::string>& tags,
                  const std::string& token) {
  const AwsLabel& label = LabelOf(parameters);
  const std::string& strategy = *label.fleet_strategy;
  Query query("CreateFleet");
  query.Add("Type", "instant").Add("ClientToken", token);
  const std::string config = "LaunchTemplateConfigs.1.";
  query.Add(config + "LaunchTemplateSpecification.LaunchTemplateName", template_name);
  query.Add(config + "LaunchTemplateSpecification.Version", "$Latest");
  int number = 0;
  for (const Candidate& candidate : CandidatesOf(label, PoolOf(parameters))) {
    const std::string name = fmt::format("{}Overrides.{}.", config, ++number);
    AddOverride(candidate, image, name, query);
    // Without it AWS may take any of them first.
    if (strategy == "prioritized") query.Add(name + "Priority", number);
    // The template names the usual root device.
    const BlockDevice* root = image.Root();
    if (root != nullptr && root->name != kTemplateDevice) AddRootVolume(*root, label.volume, name, query);
  }
  query.Add("TargetCapacitySpecification.TotalTargetCapacity", 1);
  query.Add("TargetCapacitySpecification.DefaultTargetCapacityType", label.use_spot ? "spot" : "on-demand");
  query.Add(label.use_spot ? "SpotOptions.AllocationStrategy" : "OnDemandOptions.AllocationStrategy",
            strategy);
  AddTagSpecifications({"instance", "volume"}, tags, query);
  return query;
}

FleetAnswer ReadFleet(const pugi::xml_node& root) {
  FleetAnswer answer;
  for (const pugi::xml_node& item : Items(root, "fleetInstanceSet")) {
    if (answer.instance.empty()) answer.instance = TextAt(item, {"instanceIds", "item"});
  }
  for (const pugi::xml_node& item : Items(root, "errorSet")) {
    answer.errors.push_back({TextAt(item, {"errorCode"}), TextAt(item, {"errorMessage"})});
  }
  return answer;
}

void ThrowFleetErrors(const std::vector<FleetError>& errors) {
  std::set<std::string> texts;  // candidates often fail alike
  for (const FleetError& error : errors) texts.insert(error.code + ": " + error.message);
  std::string message = "AWS made no instance of the fleet";
  for (const std::string& text : texts) message += "; " + text;
  message = Excerpt(message, kMaxFleetMessage);
  auto mean = [&errors](bool (*kind)(std::string_view)) {
    return std::ranges::count_if(errors, kind, &FleetError::code);
  };
  const auto all = std::ssize(errors);
  if (mean(&MeansQuota) > 0) throw Error(Verdict::kQuota, message);
  if (mean(&MeansBadSettings) == all && all > 0) throw Error(Verdict::kInvalid, message);
  if (mean(&MeansNoCapacity) + mean(&MeansBadSettings) == all && all > 0) {
    throw driver::cloud::LaunchError(driver::cloud::LaunchError::Kind::kCapacity, message);
  }
  throw Error(Verdict::kFail, message);
}

}  // namespace nodepool::drivers::aws
