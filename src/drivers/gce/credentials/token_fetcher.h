#pragma once

#include <optional>
#include <string>

#include "driver/cloud/api/token_client.h"
#include "drivers/gce/api/compute.h"

namespace nodepool::drivers::gce {

using Token = driver::cloud::api::BearerToken;

// Gets a provider's tokens (driver-gce.md 3). The files are read anew each time.
class TokenFetcher {
 public:
  // `file`: the one that the provider's section names; none: GOOGLE_APPLICATION_CREDENTIALS, that of gcloud
  // if it exists, or the metadata server. Everything outlives the fetcher.
  TokenFetcher(const driver::DriverEnvironment& environment, net::HttpClient& http,
               const Endpoints& endpoints, std::optional<std::string> file, Variables variables,
               log::Logger logger);

  // Error(kRetry): what is configured cannot be used, or the service did not answer, or with something else;
  // ApiError(kRetry): it refused. All this says nothing about the calls that need the token.
  Task<Token> Fetch();

 private:
  std::string PathOfFile() const;
  Task<Token> FetchOnce();
  Task<Token> Impersonate(std::string url, std::string token);

  const Endpoints& endpoints_;
  std::optional<std::string> file_;
  Variables variables_;
  driver::cloud::api::TokenClient client_;
};

}  // namespace nodepool::drivers::gce
