#include "drivers/aws/compute/launch_template.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <map>

#include "base/digest.h"
#include "base/encoding.h"
#include "base/utf8.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/compute/tag_parameters.h"

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

}  // namespace nodepool::drivers::aws
