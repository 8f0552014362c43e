#pragma once

#include "async/loop.h"
#include "async/task.h"
#include "driver/cloud/api/credentials.h"
#include "drivers/aws/credentials/account.h"
#include "drivers/aws/credentials/credentials.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::aws {

using driver::cloud::api::ServerClock;

// Gets a provider's credentials (driver-aws.md 3.3 to 3.5). The files are read again each time.
class CredentialFetcher {
 public:
  // `is_named`: whether the configuration names the account's profile. Everything outlives the fetcher.
  CredentialFetcher(Loop& loop, net::HttpClient& http, ServerClock& clock, const Account& account,
                    Variables variables, bool is_named);

  // Error(kInvalid): there are none, or what is configured cannot be used; ApiError: they were refused;
  // Error(kRetry): the service that gives them did not answer.
  Task<Credentials> Fetch();

 private:
  Task<Credentials> FetchFirst(CredentialPlan plan);
  Task<Credentials> FromWebIdentity(CredentialPlan plan);
  Task<Credentials> FromProcess(CredentialPlan plan);
  Task<Credentials> FromContainer(CredentialPlan plan);
  // `what` names the call in errors.
  Task<net::HttpReply> SendToSts(net::HttpCall call, std::string what);
  Task<Credentials> Assume(Role role, Credentials source);

  Loop& loop_;
  net::HttpClient& http_;
  ServerClock& clock_;
  const Account& account_;
  Variables variables_;
  bool is_named_;
};

}  // namespace nodepool::drivers::aws
