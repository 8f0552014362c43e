#pragma once

#include <map>
#include <optional>
#include <string>

#include "drivers/aws/credentials/ini_file.h"

namespace nodepool::drivers::aws {

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
