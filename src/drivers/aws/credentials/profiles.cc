#include "drivers/aws/credentials/profiles.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/text.h"

namespace nodepool::drivers::aws {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;

std::string PathOf(const Variables& variables, const char* variable, const char* file) {
  std::string path = VariableIn(variables, variable);
  std::string home = VariableIn(variables, "HOME");
  if (path.empty()) path = std::string("~/.aws/") + file;
  return path.starts_with("~/") ? home + path.substr(1) : path;
}

IniFile ReadIniFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    throw Error(Verdict::kInvalid, fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  }
  std::string text(kMaxFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxFile) throw Error(Verdict::kInvalid, path + " is larger than 1 MiB");
  try {
    return ParseIni(text);
  } catch (const Error& error) {
    throw error.In(path);
  }
}

const IniSection* FindSection(const IniFile& file, const std::string& name) {
  auto found = file.find(name);
  return found == file.end() ? nullptr : &found->second;
}

}  // namespace

std::string VariableIn(const Variables& variables, const std::string& name) {
  auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

const IniSection* Profiles::InConfig(const std::string& profile) const {
  for (const char* form : {"profile {}", "profile \"{}\"", "profile '{}'"}) {
    const IniSection* section = FindSection(config, fmt::format(fmt::runtime(form), profile));
    if (section != nullptr) return section;
  }
  return profile == "default" ? FindSection(config, profile) : nullptr;
}

const IniSection* Profiles::InCredentials(const std::string& profile) const {
  return FindSection(credentials, profile);
}

std::string Profiles::Text(const std::string& profile, const std::string& key) const {
  for (const IniSection* section : {InConfig(profile), InCredentials(profile)}) {
    std::string text = section == nullptr ? "" : IniText(*section, key);
    if (!text.empty()) return text;
  }
  return "";
}

Profiles ReadProfiles(const Variables& variables) {
  Profiles profiles;
  profiles.config_path = PathOf(variables, "AWS_CONFIG_FILE", "config");
  profiles.credentials_path = PathOf(variables, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  profiles.config = ReadIniFile(profiles.config_path);
  profiles.credentials = ReadIniFile(profiles.credentials_path);
  return profiles;
}

std::string ChooseProfile(const Profiles& profiles, const Variables& variables,
                          const std::optional<std::string>& configured) {
  std::string name = configured.value_or("");
  for (const char* variable : {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}) {
    if (name.empty()) name = VariableIn(variables, variable);
  }
  if (name.empty()) return "default";
  bool is_known = profiles.InConfig(name) != nullptr || profiles.InCredentials(name) != nullptr;
  if (is_known || (name == "default" && !configured)) return name;
  throw Error(Verdict::kInvalid, fmt::format("there is no AWS profile {} in {} or {}", Excerpt(name),
                                             profiles.config_path, profiles.credentials_path));
}

}  // namespace nodepool::drivers::aws
