#include "drivers/aws/compute/instance_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <map>
#include <set>

#include "async/backoff.h"
#include "async/task.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/json_calls.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/config/aws_settings.h"

namespace nodepool::drivers::aws {

namespace json = boost::json;

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

namespace {

constexpr const char* kManagedTag = "nodepool_managed";

std::map<std::string, std::string> TemplateTags(const std::string& provider) {
  return {{kManagedTag, "True"}, {driver::cloud::kProviderKey, provider}};
}

json::value OrNull(const std::optional<std::string>& text) {
  return text ? json::value(*text) : json::value(nullptr);
}

json::object VolumeOf(const RootVolume& wanted) {
  json::object volume{{"DeleteOnTermination", true}};
  if (wanted.size) volume["VolumeSize"] = *wanted.size;
  if (wanted.type) volume["VolumeType"] = *wanted.type;
  if (wanted.iops) volume["Iops"] = *wanted.iops;
  if (wanted.throughput) volume["Throughput"] = *wanted.throughput;
  return volume;
}

// Text as Python's json.dumps() writes it: nothing but printable ASCII.
std::string PythonText(std::string_view text) {
  const std::string quoted = json::serialize(json::value(text));
  std::string result;
  for (std::string_view rest = quoted; !rest.empty();) {
    Utf8Character character = FirstCharacter(rest);
    auto code = static_cast<std::uint32_t>(character.code);
    if (code < 0x7F) {
      result += rest.front();
    } else if (code < 0x10000) {
      result += fmt::format("\\u{:04x}", code);
    } else {
      result += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + (code & 0x3FF));
    }
    rest.remove_prefix(character.length);
  }
  return result;
}

// As json.dumps(value, sort_keys=True) of Python.
std::string PythonJson(const json::value& value) {
  std::string text;
  auto separate = [&text] {
    if (text.size() > 1) text += ", ";
  };
  if (value.is_object()) {
    std::map<std::string_view, const json::value*> sorted;
    for (const auto& [key, member] : value.as_object()) sorted[key] = &member;
    text = "{";
    for (const auto& [key, member] : sorted) {
      separate();
      text += PythonText(key) + ": " + PythonJson(*member);
    }
    return text + "}";
  }
  if (value.is_array()) {
    text = "[";
    for (const json::value& item : value.as_array()) {
      separate();
      text += PythonJson(item);
    }
    return text + "]";
  }
  return value.is_string() ? PythonText(value.as_string()) : json::serialize(value);
}

// A Python launcher of the same provider deletes templates whose names it does not know, so names are
// computed exactly as it does.
std::string TemplateName(const json::object& data, const std::string& provider) {
  json::array tags;
  for (const auto& [key, value] : TemplateTags(provider))
    tags.push_back(json::object{{"Key", key}, {"Value", value}});
  json::array specifications{json::object{{"ResourceType", "launch-template"}, {"Tags", std::move(tags)}}};
  json::object named{{"LaunchTemplateData", data}, {"TagSpecifications", std::move(specifications)}};
  return kTemplatePrefix + Sha256Hex(PythonJson(named));
}

}  // namespace

LaunchTemplate TemplateOf(const AwsLabel& label, const AwsPool& pool, const std::string& provider) {
  LaunchTemplate result;
  result.data["KeyName"] = OrNull(label.key_name);
  result.data["SecurityGroupIds"] = json::array{OrNull(pool.security_group_id)};
  json::object device{{"DeviceName", kTemplateDevice}, {"Ebs", VolumeOf(label.volume)}};
  result.data["BlockDeviceMappings"] = json::array{std::move(device)};
  if (label.imdsv2) {
    result.data["MetadataOptions"] = json::object{{"HttpTokens", *label.imdsv2}, {"HttpEndpoint", "enabled"}};
  }
  if (label.userdata && !label.userdata->empty()) result.data["UserData"] = Base64(*label.userdata);
  result.name = TemplateName(result.data, provider);
  return result;
}

Query CreateLaunchTemplate(const LaunchTemplate& wanted, const std::string& provider) {
  Query query("CreateLaunchTemplate");
  query.Add("LaunchTemplateName", wanted.name);
  AddStructure("LaunchTemplateData", wanted.data, query);
  AddTagSpecifications({"launch-template"}, TemplateTags(provider), query);
  return query;
}

void AddStructure(const std::string& name, const json::value& value, Query& query) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.as_object())
      AddStructure(name + "." + std::string(key), member, query);
  } else if (value.is_array()) {
    int number = 0;
    const std::string singular = name.substr(0, name.size() - 1);
    for (const json::value& item : value.as_array()) {
      if (!item.is_null()) AddStructure(fmt::format("{}.{}", singular, ++number), item, query);
    }
  } else if (value.is_string()) {
    query.Add(name, std::string(value.as_string()));
  } else if (!value.is_null()) {
    query.Add(name, json::serialize(value));
  }
}

namespace {

constexpr Backoff::Settings kPauses{std::chrono::seconds(1), std::chrono::minutes(1)};

// By name.
std::map<std::string, LaunchTemplate> Needed(const AwsConfig& config) {
  std::map<std::string, LaunchTemplate> needed;
  for (const AwsPool* pool : driver::cloud::PoolsOf<AwsPool>(config)) {
    for (const AwsLabel* label : driver::cloud::LabelsOf<AwsLabel>(*pool)) {
      if (!label->fleet_strategy) continue;
      LaunchTemplate wanted = TemplateOf(*label, *pool, config.name.str());
      std::string name = wanted.name;
      needed.emplace(std::move(name), std::move(wanted));
    }
  }
  return needed;
}

Task<> CreateTemplate(Ec2& ec2, Query query) {
  Outcome<> created = co_await Attempt(ec2.Call(std::move(query)));
  bool exists = !created && CodeOf(created.error()) == "InvalidLaunchTemplateName.AlreadyExistsException";
  if (!created && !exists) created.error().Rethrow();
}

Task<> DeleteTemplate(Ec2& ec2, const log::Logger& logger, std::string name) {
  Query query("DeleteLaunchTemplate");
  query.Add("LaunchTemplateName", name);
  Outcome<> deleted = co_await Attempt(ec2.Call(std::move(query)));
  bool is_gone = deleted || CodeOf(deleted.error()) == "InvalidLaunchTemplateName.NotFoundException";
  if (is_gone) {
    logger.Info("Deleted launch template {}: no label needs it", name);
  } else {
    logger.Warning("Launch template {}, which no label needs, could not be deleted: {}", name,
                   deleted.error().message());
  }
}

}  // namespace

std::vector<ListedTemplate> ReadTemplates(const pugi::xml_node& root) {
  std::vector<ListedTemplate> templates;
  for (const pugi::xml_node& item : Items(root, "launchTemplates")) {
    std::map<std::string, std::string> tags = ReadTagSet(item);
    templates.push_back({TextAt(item, {"launchTemplateName"}), tags[driver::cloud::kProviderKey]});
  }
  return templates;
}

LaunchTemplates::LaunchTemplates(const driver::cloud::AdapterEnvironment& environment,
                                 const AwsConfig& config, Ec2& ec2, TaskGroup& tasks, log::Logger logger)
    : environment_(environment), config_(config), ec2_(ec2), tasks_(tasks), logger_(std::move(logger)) {}

void LaunchTemplates::Start() {
  if (std::exchange(is_started_, true)) return;
  tasks_.Spawn("launch templates of " + config_.name.str(), Run(true));
}

void LaunchTemplates::MakeAgain() {
  bool are_being_made = is_started_ && !ready_.is_set();
  if (are_being_made) return;
  is_started_ = true;
  ready_.Reset();
  tasks_.Spawn("launch templates of " + config_.name.str(), Run(false));
}

Task<> LaunchTemplates::WaitReady() {
  if (is_started_) co_await ready_.Wait();
}

Task<> LaunchTemplates::Run(bool removes) {
  Backoff pauses(kPauses, environment_.random);
  std::string last_fault;
  while (true) {
    Outcome<> made = co_await Attempt(Make(removes));
    if (made) break;
    // An account without fleets need not permit anything about templates.
    bool is_new = ReplaceMessage(last_fault, made.error().message());
    bool are_needed = !Needed(config_).empty();
    logger_.Write(is_new && are_needed ? log::Level::kWarning : log::Level::kDebug,
                  "The launch templates of provider " + config_.name.str() +
                      " could not be made; labels with fleet wait: " + made.error().message());
    if (!are_needed) break;
    Duration pause = pauses.Next();
    co_await tasks_.loop().SleepFor(pause);
  }
  ready_.Set();
  environment_.framework.CapacityChanged();
}

Task<> LaunchTemplates::Make(bool removes) {
  std::map<std::string, LaunchTemplate> needed = Needed(config_);
  Query query("DescribeLaunchTemplates");
  query.AddFilter("launch-template-name", {std::string(kTemplatePrefix) + "*"});
  std::vector<ListedTemplate> existing = co_await ec2_.List(std::move(query), &ReadTemplates);
  std::set<std::string> names;
  for (const ListedTemplate& one : existing) names.insert(one.name);
  for (const auto& [name, wanted] : needed) {
    if (names.contains(name)) continue;
    Query creation = CreateLaunchTemplate(wanted, config_.name.str());
    co_await CreateTemplate(ec2_, std::move(creation));
    logger_.Info("Made launch template {}", name);
  }
  if (!removes) co_return;
  for (const ListedTemplate& one : existing) {
    if (one.provider != config_.name.str() || needed.contains(one.name)) continue;
    std::string name = one.name;
    co_await DeleteTemplate(ec2_, logger_, std::move(name));
  }
}

}  // namespace nodepool::drivers::aws
