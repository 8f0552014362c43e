#include "drivers/gce/credentials/token_fetcher.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/json/serialize.hpp>

#include "base/find_or_empty.h"
#include "base/rsa_key.h"
#include "base/text.h"
#include "driver/cloud/api/credential_file.h"

namespace nodepool::drivers::gce {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr int kTokenRepeats = 5;
// The right to everything that the account's roles permit.
constexpr const char* kScope = "https://www.googleapis.com/auth/cloud-platform";
constexpr const char* kTokenUrl = "https://oauth2.googleapis.com/token";
constexpr const char* kTokenType = "urn:ietf:params:oauth:token-type:access_token";
constexpr const char* kMetadataPath = "/computeMetadata/v1/instance/service-accounts/default/token";

// The service refuses assertions of a time that is too far from its own.
bool MeansWrongTime(std::string_view refusal) { return refusal.find("timeframe") != std::string_view::npos; }

// Who a file of credentials says that we are; its members are secret.
struct Identity {
  std::string url;              // of the service that gives tokens
  api::TokenClient::Form form;  // of the call, without what is signed or read for each
  // A service account, whose key signs an assertion; empty: it is another identity.
  std::string email;
  std::string key_id;
  std::string key_pem;
  // Of another provider, for whose tokens Google gives its own (workload identity federation).
  std::optional<api::SubjectSource> subject;
  std::string impersonation_url;  // of a service account; empty: none
};

api::SubjectSource ReadSource(const json::object& source) {
  api::SubjectSource subject{TextIn(source, "file"), api::UrlIn(source, "url"), {}, ""};
  if (subject.file.empty() && subject.url.empty()) {
    throw Error(Verdict::kInvalid, "its credential_source is neither file nor url; others are not supported");
  }
  if (!TextIn(source, "environment_id").empty()) {
    throw Error(Verdict::kInvalid,
                "its credential_source is of AWS, which is not supported: use file or url");
  }
  for (const auto& [name, value] : TextsIn(ObjectIn(source, "headers")))
    subject.headers.emplace_back(name, value);
  const json::object* format = ObjectIn(source, "format");
  if (format != nullptr && TextIn(*format, "type") == "json")
    subject.field = api::Needed(*format, "subject_token_field_name");
  return subject;
}

Identity ReadExternal(const json::object& file) {
  Identity identity;
  identity.form = {{"grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"},
                   {"audience", api::Needed(file, "audience")},
                   {"scope", kScope},
                   {"requested_token_type", kTokenType},
                   {"subject_token", ""},
                   {"subject_token_type", api::Needed(file, "subject_token_type")}};
  identity.url = api::UrlIn(file, "token_url", "https://sts.googleapis.com/v1/token");
  identity.impersonation_url = api::UrlIn(file, "service_account_impersonation_url");
  const json::object* source = ObjectIn(file, "credential_source");
  if (source == nullptr) throw Error(Verdict::kInvalid, "it has no credential_source");
  identity.subject = ReadSource(*source);
  return identity;
}

Identity ReadIdentity(const json::object& file) {
  std::string type = api::Needed(file, "type");
  if (type == "external_account") return ReadExternal(file);
  Identity identity;
  if (type == "service_account") {
    identity.email = api::Needed(file, "client_email");
    identity.key_id = TextIn(file, "private_key_id");
    identity.key_pem = api::Needed(file, "private_key");
  } else if (type == "authorized_user") {
    identity.form = {{"grant_type", "refresh_token"}};
    for (const char* member : {"client_id", "client_secret", "refresh_token"})
      identity.form.emplace_back(member, api::Needed(file, member));
  } else {
    throw Error(Verdict::kInvalid,
                fmt::format("its type is {}; service_account, authorized_user and external_account are known",
                            Excerpt(type)));
  }
  identity.url = api::UrlIn(file, "token_uri", kTokenUrl);
  return identity;
}

// A token signed with the account's key, for which its token service gives another one; valid for an hour.
std::string SignAssertion(const Identity& identity, WallTime now) {
  Expected<RsaKey> key = RsaKey::Parse(identity.key_pem);
  if (!key) throw key.error().In("the private_key of the credentials file");
  std::int64_t issued = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  json::object claims{{"iss", identity.email},
                      {"scope", kScope},
                      {"aud", identity.url},
                      {"iat", issued},
                      {"exp", issued + 3600}};
  return SignedToken(*key, json::serialize(claims), identity.key_id);
}

}  // namespace

TokenFetcher::TokenFetcher(const driver::DriverEnvironment& environment, net::HttpClient& http,
                           const Endpoints& endpoints, std::optional<std::string> file, Variables variables,
                           log::Logger logger)
    : endpoints_(endpoints),
      file_(std::move(file)),
      variables_(std::move(variables)),
      client_(environment.loop, environment.blocking_pool, environment.random, http, std::move(logger),
              ClientOptions(kTokenRepeats), &MeansWrongTime) {}

Task<Token> TokenFetcher::Fetch() {
  return client_.Fetch([this] { return FetchOnce(); });
}

// Empty: there is none.
std::string TokenFetcher::PathOfFile() const {
  if (file_ && !file_->empty()) return *file_;
  std::string path = FindOrEmpty(variables_, "GOOGLE_APPLICATION_CREDENTIALS");
  if (!path.empty()) return path;
  std::string folder = FindOrEmpty(variables_, "CLOUDSDK_CONFIG");
  if (folder.empty()) folder = FindOrEmpty(variables_, "HOME") + "/.config/gcloud";
  path = folder + "/application_default_credentials.json";
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 ? path : "";
}

Task<Token> TokenFetcher::FetchOnce() {
  std::string path = PathOfFile();
  if (path.empty()) {
    // Where there is no such server nothing else has credentials, either.
    std::string none =
        "there are no Google credentials: no credentials-file, no GOOGLE_APPLICATION_CREDENTIALS, no file of "
        "gcloud, and the metadata server gives none";
    net::HttpHeaders headers{{"Metadata-Flavor", "Google"}};
    co_return co_await client_.OfMachine(endpoints_.metadata + kMetadataPath, std::move(headers),
                                         std::move(none));
  }
  Identity identity = api::ReadCredentialFile<Identity>(path, &ReadIdentity);
  if (!identity.email.empty()) {
    identity.form = {{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"},
                     {"assertion", SignAssertion(identity, client_.clock().Now())}};
  }
  if (identity.subject) {
    std::string subject = co_await client_.ReadSubject(std::move(*identity.subject));
    for (auto& [name, value] : identity.form) {
      if (name == "subject_token") value = subject;
    }
  }
  Token token = co_await client_.Exchange(std::move(identity.url), std::move(identity.form));
  if (identity.impersonation_url.empty()) co_return token;
  Token of_account = co_await Impersonate(std::move(identity.impersonation_url), token.text);
  co_return of_account;
}

Task<Token> TokenFetcher::Impersonate(std::string url, std::string token) {
  net::HttpCall call;
  call.url = std::move(url);
  call.method = "POST";
  call.headers = {{"Authorization", "Bearer " + token}};
  json::object body{{"scope", json::array{kScope}}, {"lifetime", "3600s"}};
  api::SetBody(body, call);
  api::ApiReply reply = co_await client_.Send(std::move(call));
  co_return client_.ReadToken(reply, {.text = "accessToken", .end = "expireTime"});
}

}  // namespace nodepool::drivers::gce
