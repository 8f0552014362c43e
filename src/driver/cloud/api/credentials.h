#pragma once

#include <algorithm>
#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "base/log/logging.h"
#include "base/small_file.h"
#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/api_error.h"
#include "net/http/http_client.h"

namespace nodepool::driver::cloud::api {

// The time with which calls are signed: this host's, unless the cloud's differs so much that it refuses
// signatures (driver-aws.md 4, driver-gce.md 3).
class ServerClock {
 public:
  // The loop outlives the clock. `cloud`: its name, for the log.
  ServerClock(Loop& loop, log::Logger logger, std::string cloud)
      : loop_(loop), logger_(std::move(logger)), cloud_(std::move(cloud)) {}

  WallTime Now() const { return loop_.Now() + offset_; }
  // Of the cloud's time to this host's, as far as it is known.
  Duration offset() const { return offset_; }
  // Takes over the time of the answer to `call`, whose signature was refused. `request_id`: the cloud's id of
  // the call, for the log; may be empty.
  void CorrectAfter(const net::HttpReply& refusal, std::string_view call, const std::string& request_id = "");

 private:
  Loop& loop_;
  log::Logger logger_;
  std::string cloud_;
  Duration offset_{0};
};

// Reading files of JSON that say who we are for a cloud.

// Error(kInvalid): there is no such text.
std::string Needed(const boost::json::object& object, const char* key);
// `otherwise`: where there is no such text. Error(kInvalid): it is no URL with http or https.
std::string UrlIn(const boost::json::object& object, const char* key, const char* otherwise = "");

// What `read` makes of the object in the file; blocks for the time of reading. Errors name the file.
template <class T>
T ReadCredentialFile(const std::string& path, const std::function<T(const boost::json::object&)>& read) {
  boost::json::value value = ParsedJson(ReadTextFile(path));
  if (!value.is_object()) throw Error(Verdict::kInvalid, path + ": it is no JSON object");
  try {
    return read(value.get_object());
  } catch (const Error& fault) {
    throw fault.In("the credentials file " + path);
  }
}

// A credential that lasts for a while: a token, temporary keys. Fetched at first use, again some time before
// it expires, and when a service did not accept it; callers wait meanwhile for the same fetch. One that
// cannot be replaced is used until it expires. When the cloud refuses a credential (ApiError), it is not
// asked again for 15 s, however many callers there are, so that the account does not get locked. One whose
// time is over when it comes is used all the same, since the issuer or a clock may be at fault, and replaced
// some minutes later, whether services accept it or not.
//
// Credential has a member `WallTime expires`; WallTime::max(): never.
template <class Credential>
class CredentialSource {
 public:
  using Pointer = std::shared_ptr<const Credential>;
  using Fetch = std::function<Task<Credential>()>;

  // The loop outlives the source. A credential is replaced this long before it expires, but not in the first
  // half of its life.
  CredentialSource(Loop& loop, Fetch fetch, Duration renew_before = std::chrono::seconds(120))
      : loop_(loop),
        fetch_(std::move(fetch)),
        renew_before_(renew_before),
        known_([this] { return Load(); }) {}

  // Errors: those of the fetch, or the last refusal.
  Task<Pointer> Get() {
    if (known_.Find() && loop_.Now() >= renew_at_) {
      replaced_ = *known_.Find();
      known_.Clear();
    }
    return known_.Get();
  }

  // The credential is no longer valid: the next Get() fetches another one.
  void Discard(const Pointer& credential) {
    bool has_come_too_late = loop_.Now() >= credential->expires && loop_.Now() < renew_at_;
    if (has_come_too_late && known_.Find() == credential) return;
    if (replaced_ == credential) replaced_ = nullptr;
    if (known_.Find() == credential) known_.Clear();
  }

 private:
  static constexpr Duration kRefusalLasts = std::chrono::seconds(15);
  static constexpr Duration kExpiredLasts = std::chrono::minutes(5);

  Task<Pointer> Load() {
    if (refusal_ && loop_.SteadyNow() < refused_until_) throw Error(*refusal_);
    Outcome<Credential> fetched = co_await Attempt(fetch_());
    if (!fetched && replaced_ != nullptr && loop_.Now() < replaced_->expires) {
      renew_at_ = loop_.Now() + kRefusalLasts;
      co_return std::exchange(replaced_, nullptr);
    }
    bool is_refused = StatusOf(fetched) != 0;
    if (is_refused) {
      refusal_.emplace(fetched.error().verdict(), fetched.error().message());
      refused_until_ = loop_.SteadyNow() + kRefusalLasts;
    }
    if (!fetched) fetched.error().Rethrow();
    replaced_ = nullptr;
    WallTime now = loop_.Now();
    renew_at_ = std::max(fetched->expires - renew_before_, now + (fetched->expires - now) / 2);
    if (fetched->expires <= now) renew_at_ = now + kExpiredLasts;
    co_return std::make_shared<const Credential>(std::move(*fetched));
  }

  Loop& loop_;
  Fetch fetch_;
  Duration renew_before_;
  AsyncValue<Pointer> known_;
  Pointer replaced_;  // while its successor is fetched
  WallTime renew_at_{};
  std::optional<Error> refusal_;
  SteadyTime refused_until_{};
};

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
