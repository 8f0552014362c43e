#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "drivers/gce/api/compute.h"

namespace nodepool::drivers::gce {

// A key of a service account, with which it asks for tokens.
struct ServiceAccountKey {
  std::string email;
  std::string key_id;
  std::string key_pem;  // secret
  std::string token_url;
};

// What a user's login has left.
struct UserLogin {
  std::string client_id;
  std::string client_secret;  // secret
  std::string refresh_token;  // secret
  std::string token_url;
};

// An identity of another provider, for whose tokens Google gives its own (workload identity federation).
struct ExternalAccount {
  std::string audience;
  std::string subject_token_type;
  std::string token_url;
  std::string impersonation_url;                             // of a service account; empty: none
  std::string file;                                          // the subject token is in it, or:
  std::string url;                                           // it is what this answers
  std::vector<std::pair<std::string, std::string>> headers;  // of that call
  std::string field;                                         // of JSON, that has the token; empty: it is text
};

// A provider's credentials: exactly one is set, or none, which means those of this machine.
struct CredentialSettings {
  std::string origin;  // for messages: the file's path, or the metadata server
  std::optional<ServiceAccountKey> key;
  std::optional<UserLogin> user;
  std::optional<ExternalAccount> external;
};

// The path of the file that is used: the configured one, GOOGLE_APPLICATION_CREDENTIALS, or that of gcloud,
// if it exists; empty: none (driver-gce.md 3).
std::string CredentialPath(const std::optional<std::string>& configured, const Variables& variables);

// Reads the file; blocks for the time of reading. Error(kInvalid) names the file and what is wrong with it.
CredentialSettings ReadCredentials(const std::string& path);

// The right to everything that the account's roles permit.
inline constexpr const char* kScope = "https://www.googleapis.com/auth/cloud-platform";

// A token signed with the account's key, for which its token service gives another one; valid for an hour
// from `now`. Error(kInvalid): the key is no private RSA key in PEM.
std::string SignAssertion(const ServiceAccountKey& key, WallTime now);

}  // namespace nodepool::drivers::gce
