#include "drivers/gce/credentials/token_fetcher.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/small_file.h"
#include "base/time_text.h"

namespace nodepool::drivers::gce {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr int kTokenRepeats = 5;
constexpr const char* kTokenType = "urn:ietf:params:oauth:token-type:access_token";
constexpr const char* kMetadataPath = "/computeMetadata/v1/instance/service-accounts/default/token";

// The service refuses assertions of a time that is too far from its own.
bool MeansWrongTime(std::string_view refusal) { return refusal.find("timeframe") != std::string_view::npos; }

api::TokenClient::Form FormOf(const UserLogin& user) {
  return {{"grant_type", "refresh_token"},
          {"client_id", user.client_id},
          {"client_secret", user.client_secret},
          {"refresh_token", user.refresh_token}};
}

api::TokenClient::Form FormOf(const ServiceAccountKey& key, WallTime now) {
  return {{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"},
          {"assertion", SignAssertion(key, now)}};
}

api::TokenClient::Form FormOf(const ExternalAccount& account, std::string subject) {
  return {{"grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"},
          {"audience", account.audience},
          {"scope", kScope},
          {"requested_token_type", kTokenType},
          {"subject_token", std::move(subject)},
          {"subject_token_type", account.subject_token_type}};
}

}  // namespace

TokenFetcher::TokenFetcher(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http,
                           const Endpoints& endpoints, std::optional<std::string> file, Variables variables,
                           log::Logger logger)
    : endpoints_(endpoints),
      file_(std::move(file)),
      variables_(std::move(variables)),
      client_(loop, pool, random, http, std::move(logger), ClientOptions({}, kTokenRepeats),
              &MeansWrongTime) {}

Task<Token> TokenFetcher::Fetch() {
  const Duration offset = client_.clock().offset();
  Outcome<Token> token = co_await Attempt(FetchOnce());
  bool was_clock_wrong = !token && client_.clock().offset() != offset;
  if (was_clock_wrong) token = co_await Attempt(FetchOnce());
  // Somebody corrects the file, which is read again then.
  if (FailedWith(token, Verdict::kInvalid)) throw Error(Verdict::kRetry, token.error().message());
  if (!token) token.error().Rethrow();
  co_return std::move(*token);
}

Task<Token> TokenFetcher::FetchOnce() {
  std::string path = CredentialPath(file_, variables_);
  if (path.empty()) co_return co_await FromMetadata();
  CredentialSettings settings = ReadCredentials(path);
  if (settings.external) co_return co_await ForExternal(std::move(*settings.external));
  std::string url = settings.key ? settings.key->token_url : settings.user->token_url;
  api::TokenClient::Form form =
      settings.key ? FormOf(*settings.key, client_.clock().Now()) : FormOf(*settings.user);
  co_return co_await client_.Exchange(std::move(url), std::move(form));
}

Task<Token> TokenFetcher::ForExternal(ExternalAccount account) {
  std::string subject = co_await SubjectToken(account);
  Token token = co_await client_.Exchange(account.token_url, FormOf(account, std::move(subject)));
  if (account.impersonation_url.empty()) co_return token;
  Token of_account = co_await Impersonate(account.impersonation_url, token.text);
  co_return of_account;
}

Task<std::string> TokenFetcher::SubjectToken(const ExternalAccount& account) {
  std::string text;
  if (account.file.empty()) {
    net::HttpCall call;
    call.url = account.url;
    call.headers = account.headers;
    text = co_await client_.Read(std::move(call));
  } else {
    text = ReadTextFile(account.file);
  }
  if (account.field.empty()) co_return text;
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  std::string token = !error && value.is_object() ? TextIn(value.get_object(), account.field) : "";
  if (!token.empty()) co_return token;
  throw Error(Verdict::kInvalid,
              fmt::format("the subject token's source has no {}: check credential_source", account.field));
}

Task<Token> TokenFetcher::Impersonate(std::string url, std::string token) {
  net::HttpCall call;
  call.url = std::move(url);
  call.method = "POST";
  call.headers = {{"Authorization", "Bearer " + token}, {"Content-Type", "application/json"}};
  json::object body{{"scope", json::array{kScope}}, {"lifetime", "3600s"}};
  call.body = json::serialize(body);
  api::ApiReply reply = co_await client_.Send(std::move(call));
  const json::object* answer = reply.body.if_object();
  Token made;
  if (answer != nullptr) made.text = TextIn(*answer, "accessToken");
  std::optional<WallTime> expires;
  if (answer != nullptr) expires = ParseIso8601(TextIn(*answer, "expireTime"));
  if (made.text.empty() || !expires)
    throw Error(Verdict::kRetry, "the service of impersonation answered without a token");
  made.expires = *expires - client_.clock().offset();
  co_return made;
}

// Where there is no such server nothing else has credentials, either.
Task<Token> TokenFetcher::FromMetadata() {
  constexpr Duration kLimit = std::chrono::seconds(5);
  net::HttpCall call = api::LocalCall(endpoints_.metadata + kMetadataPath, kLimit);
  call.headers = {{"Metadata-Flavor", "Google"}};
  Outcome<api::ApiReply> reply = co_await Attempt(client_.Send(std::move(call)));
  if (reply) co_return client_.ReadToken(*reply);
  throw Error(Verdict::kRetry,
              fmt::format("there are no Google credentials: no credentials-file, no "
                          "GOOGLE_APPLICATION_CREDENTIALS, no file of gcloud, and the metadata server gives "
                          "none: {}",
                          reply.error().message()));
}

}  // namespace nodepool::drivers::gce
