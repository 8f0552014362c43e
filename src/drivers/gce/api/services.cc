#include "drivers/gce/api/services.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/json/serialize.hpp>

#include "base/crypto.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/api/api_error.h"
#include "driver/cloud/api/credentials.h"
#include "driver/cloud/api/url_text.h"

namespace nodepool::drivers::gce {

namespace api = driver::cloud::api;
namespace json = boost::json;
using api::PercentEncoded;

namespace {

constexpr std::size_t kMostBody = 256 * 1024;

const api::CodeSet kQuota = {"QUOTA_EXCEEDED", "quotaExceeded", "limitExceeded"};
const api::CodeSet kNoCapacity = {"ZONE_RESOURCE_POOL_EXHAUSTED*", "IP_SPACE_EXHAUSTED*",
                                  "RESOURCE_POOL_EXHAUSTED*"};
const api::CodeSet kBadSettings = {"invalid",          "required",    "badRequest", "badContent",
                                   "parseError",       "notFound",    "forbidden",  "insufficientPermissions",
                                   "invalidParameter", "invalidUsage"};
const api::CodeSet kNotReady = {"resourceNotReady", "resourceInUseByAnotherResource"};

// Credentials are of the account, not of the call: somebody replaces them, or allows the API.
const std::vector<api::FaultRule>& Rules() {
  static const std::vector<api::FaultRule> rules = {
      {429, {}, Verdict::kRateLimited},
      {0, {"rateLimitExceeded", "userRateLimitExceeded"}, Verdict::kRateLimited},
      {0, kQuota, Verdict::kQuota},
      {401, {}, Verdict::kRetry, "check the credentials of this provider"},
      {0, {"backendError", "internalError"}, Verdict::kRetry},
      {403, {"accessNotConfigured"}, Verdict::kRetry, "enable the API in the project"},
      {403, {"authError", "required", "accountDisabled"}, Verdict::kRetry},
      {0,
       {"forbidden", "insufficientPermissions"},
       Verdict::kInvalid,
       "give the account the role of docs/drivers/gce.md"},
      {404, {}, Verdict::kNotFound},
      {409, {}, Verdict::kConflict},
  };
  return rules;
}

}  // namespace

api::Fault ReadFault(int status, std::string_view body) {
  json::value parsed = body.size() > kMostBody ? json::value(nullptr) : ParsedJson(body);
  const json::object* error = ObjectIn(parsed, "error");
  if (error == nullptr) return api::Classify(Rules(), status, "", api::FaultText(body));
  std::string code = Excerpt(TextAt(*error, "errors/0/reason"), 100);
  std::string text = api::OneLine(TextIn(*error, "message"));
  if (text.empty()) text = code;
  return api::Classify(Rules(), status, std::move(code), std::move(text));
}

Meaning MeaningOf(std::string_view code, std::string_view text) {
  bool lacks_capacity = kNoCapacity.contains(code) || text.find("STOCKOUT") != std::string_view::npos;
  if (lacks_capacity) return Meaning::kNoCapacity;
  if (kQuota.contains(code)) return Meaning::kQuota;
  if (kBadSettings.contains(code)) return Meaning::kBadSettings;
  return kNotReady.contains(code) ? Meaning::kNotReady : Meaning::kOther;
}

std::string MetricIn(std::string_view text) {
  constexpr std::string_view kBefore = "Quota '";
  std::size_t begin = text.find(kBefore);
  if (begin == std::string_view::npos) return "";
  begin += kBefore.size();
  std::size_t end = text.find('\'', begin);
  return end == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin));
}

namespace {

constexpr double kReadsPerChange = 10;
constexpr int kPassingFaults = 5;
// Of a service that is overloaded, within about half a minute; the callers repeat what matters.
constexpr int kBusyRepeats = 6;
constexpr int kPageSize = 500;

// Google counts the calls of each group by itself.
std::string BudgetOf(const std::string& method, const std::string& action) {
  if (method != "GET") return "compute changes";
  if (action.ends_with(".list")) return "compute lists";
  return action.find("Operations") == std::string::npos ? "compute reads" : "compute operations";
}

api::ApiClient::Options RatedOptions(api::CallMetrics metrics, const GceConfig& config) {
  api::ApiClient::Options options = ClientOptions(kPassingFaults, std::move(metrics));
  options.change_rate = api::RateLimiter::PerSecond(config.rate);
  options.read_rate = api::RateLimiter::PerSecond(config.rate * kReadsPerChange);
  return options;
}

// Empty: the variable is not set.
std::string UrlIn(const Variables& variables, const std::string& name) {
  return api::ServiceUrl(FindOrEmpty(variables, name), name);
}

constexpr std::size_t kMostErrors = 20;

// What an error's details say beside its message.
std::string DetailsOf(const json::object& error) {
  std::string text;
  for (const json::object* detail : ObjectsIn(error, "errorDetails", kMostErrors)) {
    if (const json::object* quota = ObjectIn(*detail, "quotaInfo"))
      text += fmt::format("; quota {}, limit {}", TextIn(*quota, "metricName"), NumberIn(*quota, "limit"));
    std::string zones = TextAt(*detail, "errorInfo/metadatas/zonesAvailable");
    if (!zones.empty()) text += "; zones that have it: " + zones;
  }
  return Excerpt(text, 300);
}

void ReadErrors(const json::object& entry, Operation& operation) {
  const json::object* failure = ObjectIn(entry, "error");
  if (failure == nullptr) return;
  operation.code = "unknown";
  operation.message = Excerpt(TextIn(entry, "httpErrorMessage"), 300);
  std::optional<Meaning> most;
  for (const json::object* error : ObjectsIn(*failure, "errors", kMostErrors)) {
    std::string code = Excerpt(TextIn(*error, "code"), 100);
    std::string text = Excerpt(TextIn(*error, "message"), 600);
    Meaning meaning = MeaningOf(code, text);
    if (most && meaning <= *most) continue;
    most = meaning;
    operation.message = fmt::format("{}: {}{}", code, text, DetailsOf(*error));
    operation.code = code.empty() ? "unknown" : std::move(code);
  }
}

}  // namespace

Endpoints EndpointsOf(const Variables& variables) {
  Endpoints endpoints;
  std::string all = UrlIn(variables, "GCE_ENDPOINT");
  std::string compute = UrlIn(variables, "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE");
  if (!compute.empty()) endpoints.compute = compute;
  if (!all.empty()) endpoints.compute = all + "/compute/v1";
  if (!all.empty()) endpoints.storage = all;
  std::string metadata = FindOrEmpty(variables, "GCE_METADATA_HOST");
  if (!metadata.empty()) endpoints.metadata = "http://" + metadata;
  return endpoints;
}

Operation ReadOperation(const json::object& entry) {
  Operation operation;
  operation.name = TextIn(entry, "name");
  operation.target = TextIn(entry, "targetLink");
  operation.target_id = TextIn(entry, "targetId");
  operation.type = TextIn(entry, "operationType");
  operation.is_done = TextIn(entry, "status") == "DONE";
  ReadErrors(entry, operation);
  return operation;
}

api::ApiClient::Options ClientOptions(int repeats, api::CallMetrics metrics) {
  api::ApiClient::Options options;
  options.cloud = "Google";
  options.read_fault = &ReadFault;
  options.network_repeats = repeats;
  options.server_error_repeats = repeats;
  options.remedies.unknown_host = "check this host's name service, and GCE_ENDPOINT if it is set";
  options.remedies.no_answer = "check the way from this host to Google: network, firewall, HTTPS_PROXY";
  options.remedies.odd_answer = "a proxy or firewall on the way may have answered in place of Google";
  options.metrics = std::move(metrics);
  return options;
}

std::string FaultOfPage(const json::object& answer) {
  return TextAt(answer, "warning/code") == "UNREACHABLE" ? "Google cannot reach all of it now" : "";
}

Compute::Compute(const driver::cloud::AdapterEnvironment& environment, net::HttpClient& http,
                 const Endpoints& endpoints, const GceConfig& config, api::Signer& signer, log::Logger logger)
    : random_(environment.random),
      endpoints_(endpoints),
      project_(config.project),
      client_(environment.loop, environment.blocking_pool, environment.random, http, signer,
              std::move(logger), RatedOptions({environment.observer, config.name, "gce"}, config)) {}

api::ApiRequest Compute::RequestFor(std::string method, ComputeCall call) const {
  std::string path = call.path.starts_with("projects/") ? call.path : "projects/" + project_;
  if (path != call.path && !call.path.empty()) path += "/" + call.path;
  api::ApiRequest request;
  request.service = "compute";
  request.budget = BudgetOf(method, call.action);
  request.name = call.action;
  request.text = fmt::format("{} of {}", call.action, path);
  request.retries = kBusyRepeats;
  request.may_be_sent_again = true;
  request.call.method = std::move(method);
  request.call.url = endpoints_.compute + "/" + path;
  if (!call.query.empty()) request.call.url += "?" + call.query;
  request.call.timeouts.connect = std::chrono::seconds(60);
  return request;
}

api::ApiRequest Compute::ListRequest(ComputeCall call, const std::string& filter) const {
  call.query = fmt::format("maxResults={}", kPageSize);
  if (!filter.empty()) call.query += "&filter=" + PercentEncoded(filter);
  return RequestFor("GET", std::move(call));
}

Task<json::object> Compute::Get(ComputeCall call) {
  return api::CallForObject(client_, RequestFor("GET", std::move(call)));
}

Task<Operation> Compute::Change(std::string method, ComputeCall call, json::object body) {
  call.query = "requestId=" + random_.Uuid();
  const std::string action = call.action;
  api::ApiRequest request = RequestFor(std::move(method), std::move(call));
  if (!body.empty()) api::SetBody(body, request.call);
  json::object answer = co_await api::CallForObject(client_, std::move(request));
  Operation operation = ReadOperation(answer);
  if (operation.name.empty()) throw Error(Verdict::kRetry, action + " was answered without an operation");
  co_return operation;
}

Task<Operation> Compute::ReadAgain(std::string place, std::string operation) {
  ComputeCall call{place == "global" ? "globalOperations.get" : "zoneOperations.get",
                   place + "/operations/" + operation};
  json::object answer = co_await Get(std::move(call));
  co_return ReadOperation(answer);
}

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
