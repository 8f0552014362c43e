#include "drivers/aws/compute/launch_templates.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <map>

#include "async/attempt.h"
#include "async/backoff.h"
#include "base/digest.h"
#include "base/encoding.h"
#include "base/request_id.h"
#include "base/utf8.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/own_types.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_request.h"

namespace nodepool::drivers::aws {

namespace json = boost::json;

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
