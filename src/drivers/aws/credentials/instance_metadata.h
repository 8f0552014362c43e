#pragma once

#include "drivers/aws/credentials/credentials.h"
#include "drivers/aws/credentials/profiles.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::aws {

// The service on each instance that gives it the credentials of its role (driver-aws.md 3.4).
struct MetadataSettings {
  std::string url;
  Duration timeout = std::chrono::seconds(1);  // of each attempt
  int attempts = 1;
};

MetadataSettings MetadataSettingsOf(const Variables& variables, std::string url);

// By version 2, or by version 1 where the service has no tokens. Error(kInvalid): it has no credentials, or
// there is no such service: no other source has any, either.
Task<Credentials> FetchFromMetadata(net::HttpClient& http, MetadataSettings settings);

}  // namespace nodepool::drivers::aws
