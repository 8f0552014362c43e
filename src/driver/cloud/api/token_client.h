#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/credential_source.h"
#include "driver/cloud/api/server_clock.h"
#include "driver/cloud/api/signer.h"

namespace nodepool::driver::cloud::api {

// What whoever has it may make calls with for a while (RFC 6750).
struct BearerToken {
  std::string text;  // secret
  WallTime expires = WallTime::max();
};

// Adds a provider's token to calls.
class BearerSigner : public Signer {
 public:
  using Tokens = CredentialSource<BearerToken>;
  // `tokens` outlives it.
  explicit BearerSigner(Tokens& tokens) : tokens_(tokens) {}

  Task<Renew> Sign(net::HttpCall& call) override;

 private:
  Tokens& tokens_;
};

// Reads a refusal of a token service (RFC 6749, 5.2): {"error": "invalid_grant", "error_description": "..."}.
// The account is at fault, not what is called with it, so that it is tried again: kRetry or kRateLimited.
Fault ReadTokenFault(int status, std::string_view body);

// A GET of the machine's own metadata service, to which there is no proxy and which answers at once.
net::HttpCall LocalCall(std::string url, Duration limit);

// Where a token is that another one is asked for with: in a file, or in what a URL answers. Read anew each
// time.
struct SubjectSource {
  std::string file;  // empty: the URL
  std::string url;
  net::HttpHeaders headers;  // of that call
  std::string field;         // of JSON, that has the token; empty: it is the text
};

// Where a token is in the JSON that a service answers with.
struct TokenMembers {
  const char* text = "access_token";
  const char* lifetime = "expires_in";  // seconds
  const char* end = "";                 // in place of that its end (ISO 8601); empty: there is none
};

// Calls the services of one cloud that give tokens, or what tokens are given for.
class TokenClient {
 public:
  using Form = std::vector<std::pair<std::string, std::string>>;

  // `options.cloud` is the cloud's name. `means_wrong_time`: whether a refusal's text says that what was
  // signed was not signed at that time; the clock is corrected then. Everything outlives the client.
  TokenClient(
      Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, log::Logger logger,
      ApiClient::Options options,
      std::function<bool(std::string_view)> means_wrong_time = [](std::string_view) { return false; });

  // For times in what is signed.
  const ServerClock& clock() const { return clock_; }

  // What `fetch` returns; repeated once if the clock was corrected meanwhile. What is configured wrongly
  // (kInvalid) becomes kRetry: somebody corrects it, and then it is read again.
  Task<BearerToken> Fetch(std::function<Task<BearerToken>()> fetch);
  // The token that the service at `url` gives for the form. Errors: those of Send() and ReadToken().
  Task<BearerToken> Exchange(std::string url, Form form);
  // Any other call that answers JSON; repeated after passing faults. Errors: those of ApiClient::CallJson.
  Task<ApiReply> Send(net::HttpCall call);
  // The token that the machine's own metadata service gives. Error(kRetry): it gives none, with `otherwise`
  // before the cause.
  Task<BearerToken> OfMachine(std::string url, net::HttpHeaders headers, std::string otherwise);
  // Error(kInvalid): the file cannot be read, or the JSON has no such field.
  Task<std::string> ReadSubject(SubjectSource source);

  // {"access_token": "...", "expires_in": 3600}, or other members. Error(kRetry): the answer has no token.
  BearerToken ReadToken(const ApiReply& reply, const TokenMembers& members = {}) const;

 private:
  ApiClient::Options WithFaults(ApiClient::Options options);

  Loop& loop_;
  std::function<bool(std::string_view)> means_wrong_time_;
  ServerClock clock_;
  NoSigner no_signer_;
  ApiClient client_;
};

}  // namespace nodepool::driver::cloud::api
