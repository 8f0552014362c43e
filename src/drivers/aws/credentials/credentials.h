#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

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

// What calls are signed with. Secret but for the key's id.
struct Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token;  // of temporary ones; else empty
  WallTime expires = WallTime::max();
};

// Where credentials come from as JSON, their members have different names.
struct CredentialNames {
  const char* session_token = "Token";
};

// Reads {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}. Error(kInvalid): there are none, with the
// reason that the text gives. `source` begins the message.
Credentials ReadCredentials(std::string_view text, std::string_view source, CredentialNames names = {});

// A role to be assumed.
struct Role {
  std::string arn;
  std::string session_name;  // empty: one is made
  std::string external_id;   // empty: none
  int seconds = 3600;        // how long its credentials last
};

// How a provider gets its credentials: from the first source of the chain that is configured, and then by
// assuming roles, each with the credentials of the one before (driver-aws.md 3.3).
struct CredentialPlan {
  enum class Source {
    kKeys,
    kWebIdentity,
    kProcess,
    kContainer,
    kInstanceMetadata,
  };
  Source source = Source::kInstanceMetadata;
  std::string origin;       // for messages: "profile default in /root/.aws/credentials"
  Credentials keys;         // kKeys
  Role web_role;            // kWebIdentity
  std::string token_file;   // kWebIdentity: the identity's token
  std::string command;      // kProcess
  std::string url;          // kContainer, kInstanceMetadata: where
  std::string header;       // kContainer: of `Authorization`; empty: none
  std::string header_file;  // kContainer: read the header from it; empty: no file
  std::vector<Role> roles;
};

// Decides without a network. `is_named`: whether the configuration names the profile, so that the
// environment's keys do not count. Error(kInvalid): what is configured cannot be used.
CredentialPlan PlanCredentials(const Profiles& profiles, const Variables& variables,
                               const std::string& profile, bool is_named);

}  // namespace nodepool::drivers::aws
