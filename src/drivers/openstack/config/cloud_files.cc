#include "drivers/openstack/config/cloud_files.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/yaml/yaml_reader.h"

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

// The first file of a kind that may be read; `first` is tried before all others.
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
    if (content->kind() != config::Value::Kind::kMap) throw Error(Verdict::kInvalid, path + " is no mapping");
    return Found{path, ToJson(*content).as_object()};
  }
  return std::nullopt;
}

json::object Member(const json::object& object, std::string_view key) {
  const json::value* member = object.if_contains(key);
  return member != nullptr && member->is_object() ? member->as_object() : json::object();
}

// The settings that OS_* variables make, and whether they make a cloud at all.
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
    std::string key = name.substr(3);
    std::ranges::transform(key, key.begin(), [](unsigned char c) { return std::tolower(c); });
    cloud[key] = value;
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
  auto clouds = FindFile(Variable(variables, "OS_CLIENT_CONFIG_FILE"), directories, "clouds");
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

}  // namespace nodepool::drivers::openstack
