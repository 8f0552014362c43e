#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace nodepool::drivers::aws {

// A setting: its text, and the settings of the indented block below it, if there is one.
struct IniSetting {
  std::string text;
  std::map<std::string, std::string> block;
};
using IniSection = std::map<std::string, IniSetting>;

// The sections of a file by the name in their brackets (driver-aws.md 3.2).
using IniFile = std::map<std::string, IniSection>;

// Error(kInvalid) names the line; nothing of the content, which may be secret.
IniFile ParseIni(std::string_view text);

// Empty: there is no such setting.
std::string IniText(const IniSection& section, const std::string& key);

// Environment variables by name.
using Variables = std::map<std::string, std::string>;
// Empty: it is not set.
std::string VariableIn(const Variables& variables, const std::string& name);

// The shared files of the account's user (driver-aws.md 3.2). Contains secrets.
struct Profiles {
  std::string config_path;
  std::string credentials_path;
  IniFile config;
  IniFile credentials;

  // Null: the file has no such profile.
  const IniSection* InConfig(const std::string& profile) const;
  const IniSection* InCredentials(const std::string& profile) const;
  // A setting of the profile in the file of settings, else in the one of credentials; empty: in neither.
  std::string Text(const std::string& profile, const std::string& key) const;
};

// Reads the files; one that does not exist counts as empty. Blocks for the time of reading. Error(kInvalid)
// names a file that cannot be read or parsed.
Profiles ReadProfiles(const Variables& variables);

// The profile that is used: the configured one, else the environment's, else "default". Error(kInvalid): one
// is named and is in neither file.
std::string ChooseProfile(const Profiles& profiles, const Variables& variables,
                          const std::optional<std::string>& configured);

}  // namespace nodepool::drivers::aws
