#include "drivers/openstack/config/cloud_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "config/yaml/yaml_reader.h"
#include "drivers/openstack/config/cloud_config.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

json::value ToJson(const config::Value& value) {
  using Kind = config::Value::Kind;
  switch (value.kind()) {
    case Kind::kNull:
      return nullptr;
    case Kind::kBool:
      return value.bool_value();
    case Kind::kList: {
      json::array items;
      for (const config::Value& item : value.list()) items.push_back(ToJson(item));
      return items;
    }
    case Kind::kMap: {
      json::object members;
      for (const auto& [key, member] : value.map()) members[key] = ToJson(member);
      return members;
    }
    default:
      return json::value(value.text());
  }
}

std::string Variable(const Variables& variables, const std::string& name) {
  auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

std::vector<std::string> Directories(const Variables& variables) {
  std::string home = Variable(variables, "SNAP_REAL_HOME");
  if (home.empty()) home = Variable(variables, "HOME");
  std::string own = Variable(variables, "XDG_CONFIG_HOME");
  std::vector<std::string> directories = {"."};
  if (!own.empty()) directories.push_back(own + "/openstack");
  if (!home.empty()) directories.push_back(home + "/.config/openstack");
  std::string shared = Variable(variables, "XDG_CONFIG_DIRS");
  for (const std::string& path : Split(shared.empty() ? "/etc/xdg" : shared, ':')) {
    directories.push_back(path + "/openstack");
  }
  directories.push_back("/etc/openstack");
  return directories;
}

struct Found {
  std::string path;
  json::object content;
};

// The first readable file of a kind; `first` is tried before all others.
std::optional<Found> FindFile(const std::string& first, const std::vector<std::string>& directories,
                              const std::string& name) {
  std::vector<std::string> paths;
  if (!first.empty()) paths.push_back(first);
  for (const std::string& directory : directories) {
    for (const char* suffix : {".yaml", ".yml", ".json"}) {
      paths.push_back((std::filesystem::path(directory) / (name + suffix)).string());
    }
  }
  for (const std::string& path : paths) {
    if (::access(path.c_str(), R_OK) != 0 || std::filesystem::is_directory(path)) continue;
    auto content = config::ReadYamlFile(path, [](std::string_view) { return std::nullopt; });
    if (!content) throw Error(Verdict::kInvalid, content.error().message());
    if (content->is_null()) return Found{path, {}};
    if (content->kind() != config::Value::Kind::kMap)
      throw Error(Verdict::kInvalid, path + " is not a mapping");
    return Found{path, ToJson(*content).as_object()};
  }
  return std::nullopt;
}

// "no clouds.yaml was found ...", with where it may be.
std::string DescribeSearch(const std::string& named, const std::vector<std::string>& directories) {
  std::string places = "no clouds.yaml was found in " + Join(directories, ", ");
  if (named.empty()) return places + "; OS_CLIENT_CONFIG_FILE may name one elsewhere";
  return "OS_CLIENT_CONFIG_FILE names " + named + ", which cannot be read, and " + places;
}

json::object Member(const json::object& object, std::string_view key) {
  const json::value* member = object.if_contains(key);
  return member != nullptr && member->is_object() ? member->as_object() : json::object();
}

// The cloud defined by OS_* variables; empty: they define none.
json::object CloudOfVariables(const Variables& variables) {
  static const std::set<std::string> others = {"OS_CLOUD", "OS_REGION_NAME", "OS_CLIENT_CONFIG_FILE",
                                               "OS_CLIENT_SECURE_FILE", "OS_CLOUD_NAME"};
  json::object cloud;
  bool makes_cloud = false;
  for (const auto& [name, value] : variables) {
    if (!name.starts_with("OS_")) continue;
    bool is_for_tests =
        name.starts_with("OS_TEST") || name.starts_with("OS_STD") || name.starts_with("OS_LOG");
    if (!others.contains(name) && !is_for_tests) makes_cloud = true;
    cloud[Lower(name.substr(3))] = value;
  }
  return makes_cloud ? cloud : json::object();
}

}  // namespace

Variables ProcessVariables() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

void MergeInto(json::object& base, const json::object& over) {
  for (const auto& [key, value] : over) {
    json::value* present = base.if_contains(key);
    if (present != nullptr && present->is_object() && value.is_object()) {
      MergeInto(present->as_object(), value.as_object());
    } else {
      base[key] = value;
    }
  }
}

CloudFiles ReadCloudFiles(Variables variables) {
  CloudFiles files;
  std::vector<std::string> directories = Directories(variables);
  json::object content;
  std::string named = Variable(variables, "OS_CLIENT_CONFIG_FILE");
  files.search = DescribeSearch(named, directories);
  auto clouds = FindFile(named, directories, "clouds");
  if (clouds) {
    files.source = clouds->path;
    content = std::move(clouds->content);
  }
  auto secure = FindFile(Variable(variables, "OS_CLIENT_SECURE_FILE"), directories, "secure");
  if (secure) MergeInto(content, secure->content);
  if (auto vendors = FindFile("", directories, "clouds-public")) {
    files.profiles = Member(vendors->content, "public-clouds");
  }
  files.clouds = Member(content, "clouds");
  files.client = Member(content, "client");
  json::object own = CloudOfVariables(variables);
  if (!own.empty()) {
    files.env_cloud = Variable(variables, "OS_CLOUD_NAME");
    if (files.env_cloud.empty()) files.env_cloud = "envvars";
    if (files.clouds.contains(files.env_cloud)) {
      throw Error(Verdict::kInvalid, "OS_* variables make a cloud " + files.env_cloud + ", which " +
                                         files.source + " defines, too; name it otherwise by OS_CLOUD_NAME");
    }
    files.clouds[files.env_cloud] = std::move(own);
  }
  files.variables = std::move(variables);
  return files;
}

namespace {

[[noreturn]] void Fail(const std::string& cloud, const std::string& what) {
  throw Error(Verdict::kInvalid, fmt::format("cloud {}: {}", cloud, what));
}

// Replaces key by key, except that `auth` is merged (driver-openstack.md 3.3, step 3).
void Overlay(json::object& base, const json::object& over) {
  for (const auto& [key, value] : over) {
    json::value* present = base.if_contains(key);
    if (key == "auth" && present != nullptr && present->is_object() && value.is_object()) {
      for (const auto& [option, setting] : value.as_object()) present->as_object()[option] = setting;
    } else {
      base[key] = value;
    }
  }
}

json::object WithUnderscores(const json::object& settings) {
  json::object result;
  for (const auto& [key, value] : settings) {
    std::string name(key);
    std::ranges::replace(name, '-', '_');
    result[name] = name == "auth" && value.is_object() ? WithUnderscores(value.as_object()) : value;
  }
  return result;
}

std::string Take(json::object& settings, std::string_view key) {
  std::string text = TextOf(settings.if_contains(key));
  settings.erase(key);
  return text;
}

std::string ProfileOf(json::object& settings) {
  std::string profile = Take(settings, "profile");
  std::string old_name = Take(settings, "cloud");
  return profile.empty() ? old_name : profile;
}

// The vendor's settings, including those of the profile that it refers to.
json::object Profile(const CloudFiles& files, const std::string& cloud, const std::string& name, int depth) {
  if (name.find("://") != std::string::npos) {
    Fail(cloud, "a profile that is a URL is not supported; write its settings to clouds-public.yaml");
  }
  const json::value* found = files.profiles.if_contains(name);
  if (found == nullptr || !found->is_object()) {
    log::Logger("nodepool.OpenStackAdapter")
        .Warning("Cloud {} names the profile {}, which no clouds-public.yaml contains; it is ignored", cloud,
                 name);
    return {};
  }
  json::object own = WithUnderscores(found->as_object());
  std::string parent = ProfileOf(own);
  if (parent.empty() || depth > 0) return own;
  json::object result = Profile(files, cloud, parent, depth + 1);
  Overlay(result, own);
  return result;
}

struct Region {
  std::string name;
  json::object values;
};

std::vector<Region> KnownRegions(const json::object& settings) {
  std::vector<Region> regions;
  const json::value* list = settings.if_contains("regions");
  if (list != nullptr && list->is_array()) {
    for (const json::value& item : list->as_array()) {
      if (!item.is_object()) {
        regions.push_back({TextOf(&item), {}});
        continue;
      }
      const json::value* values = item.as_object().if_contains("values");
      regions.push_back(
          {TextOf(item.as_object().if_contains("name")),
           values != nullptr && values->is_object() ? WithUnderscores(values->as_object()) : json::object()});
    }
  }
  const json::value* names = settings.if_contains("region_name");
  if (!regions.empty() || names == nullptr) return regions;
  if (names->is_array()) {
    for (const json::value& item : names->as_array()) regions.push_back({TextOf(&item), {}});
  } else {
    for (const std::string& part : Split(TextOf(names), ',')) regions.push_back({part, {}});
  }
  return regions;
}

void ApplyRegion(json::object& settings, const std::optional<std::string>& wanted, const std::string& cloud) {
  std::vector<Region> regions = KnownRegions(settings);
  Region chosen;
  if (wanted) {
    auto found = std::ranges::find(regions, *wanted, &Region::name);
    if (found != regions.end()) chosen = *found;
    if (found == regions.end() && !regions.empty()) {
      std::vector<std::string> names;
      for (const Region& region : regions) names.push_back(region.name);
      Fail(cloud, fmt::format("{} is not a valid region name for cloud {}; it has: {}", Excerpt(*wanted),
                              cloud, Join(names, ", ")));
    }
    chosen.name = *wanted;
  } else if (!regions.empty()) {
    chosen = regions.front();
  }
  Overlay(settings, chosen.values);
  settings.erase("regions");
  settings["region_name"] = chosen.name;
}

void RenameSynonyms(json::object& settings) {
  const std::pair<const char*, const char*> synonyms[] = {
      {"endpoint_type", "interface"}, {"x_endpoint_type", "interface"}, {"auth_plugin", "auth_type"}};
  for (const auto& [old_name, new_name] : synonyms) {
    const json::value* value = settings.if_contains(old_name);
    if (value == nullptr || value->is_null()) continue;
    json::value copy = *value;
    settings.erase(old_name);
    settings[new_name] = std::move(copy);
  }
  for (const auto& [key, value] : settings) {
    bool is_timeout = key.ends_with("timeout") && key != "timeout" && key != "api_timeout";
    if (is_timeout && !value.is_null()) {
      settings["api_timeout"] = json::value(value);
      break;
    }
  }
}

// Replaces "{region_name}" and other settings in braces.
std::string Expanded(const std::string& text, const json::object& settings) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t open = text.find('{', at);
    std::size_t close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) break;
    const json::value* value = settings.if_contains(text.substr(open + 1, close - open - 1));
    bool is_known = value != nullptr && value->is_string();
    result += text.substr(at, open - at);
    result += is_known ? TextOf(value) : text.substr(open, close - open + 1);
    at = close + 1;
  }
  return result + text.substr(at);
}

void Expand(json::object& settings) {
  const json::object before = settings;
  for (auto& member : settings) {
    if (member.value().is_string()) member.value() = Expanded(TextOf(&member.value()), before);
  }
  json::value* auth = settings.if_contains("auth");
  if (auth == nullptr || !auth->is_object()) return;
  json::value* url = auth->as_object().if_contains("auth_url");
  if (url != nullptr && url->is_string()) *url = Expanded(TextOf(url), before);
}

std::string DefaultName(const CloudFiles& files) {
  auto chosen = files.variables.find("OS_CLOUD");
  if (chosen != files.variables.end() && !chosen->second.empty()) return chosen->second;
  if (!files.env_cloud.empty()) return files.env_cloud;
  if (files.clouds.size() == 1) return std::string(files.clouds.begin()->key());
  return "";
}

}  // namespace

std::string TextOf(const json::value* value) {
  if (value == nullptr) return "";
  if (value->is_string()) return std::string(value->as_string());
  if (value->is_bool()) return value->as_bool() ? "true" : "false";
  return "";
}

std::optional<bool> TruthOf(const json::value& value) {
  static const std::set<std::string> yes = {"true", "1", "yes", "on"};
  static const std::set<std::string> no = {"false", "0", "no", "off", ""};
  std::string text = Lower(TextOf(&value));
  if (yes.contains(text)) return true;
  if (no.contains(text)) return false;
  return std::nullopt;
}

json::object OverlaidCloud(const CloudFiles& files, const std::optional<std::string>& name,
                           const std::optional<std::string>& region, std::string& resolved_name) {
  resolved_name = name ? *name : DefaultName(files);
  const json::value* found = files.clouds.if_contains(resolved_name);
  if (found == nullptr || !found->is_object()) {
    std::string place = files.source.empty() ? files.search : files.source + " does not have it";
    throw Error(Verdict::kInvalid,
                resolved_name.empty()
                    ? "no cloud is named, and there is no default: " + place
                    : fmt::format("there is no cloud {}: {}", Excerpt(resolved_name), place));
  }
  json::object own = WithUnderscores(found->as_object());
  std::string profile = ProfileOf(own);
  json::object settings;
  if (!profile.empty()) settings = Profile(files, resolved_name, profile, 0);
  bool has_own_regions = own.contains("regions") || own.contains("region_name");
  // The profile's regions count only where the cloud names none (driver-openstack.md 3.3, step 4).
  if (has_own_regions) {
    settings.erase("regions");
    settings.erase("region_name");
  }
  Overlay(settings, own);
  ApplyRegion(settings, region, resolved_name);
  RenameSynonyms(settings);
  GatherAuth(settings);
  Expand(settings);
  return settings;
}

bool ForcesIpv4(const CloudFiles& files, const json::object& cloud) {
  auto variable = [&](const char* name) -> std::optional<bool> {
    auto found = files.variables.find(name);
    if (found == files.variables.end()) return std::nullopt;
    return TruthOf(json::value(found->second));
  };
  auto client = [&](const char* key) -> std::optional<bool> {
    const json::value* value = files.client.if_contains(key);
    return value == nullptr || value->is_null() ? std::nullopt : TruthOf(*value);
  };
  const json::value* own = cloud.if_contains("force_ipv4");
  if (own != nullptr && TruthOf(*own).value_or(false)) return true;
  if (variable("OS_FORCE_IPV4").value_or(false)) return true;
  if (client("force_ipv4").value_or(false) || client("broken-ipv6").value_or(false)) return true;
  std::optional<bool> prefers_ipv6 = variable("OS_PREFER_IPV6");
  if (!prefers_ipv6) prefers_ipv6 = client("prefer_ipv6");
  return !prefers_ipv6.value_or(true);
}

}  // namespace nodepool::drivers::openstack
