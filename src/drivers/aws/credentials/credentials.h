#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"

namespace nodepool::drivers::aws {

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

}  // namespace nodepool::drivers::aws
