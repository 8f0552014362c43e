#include "drivers/openstack/api/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <ctime>
#include <vector>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/openstack/api/versions.h"
#include "drivers/openstack/config/cloud_config.h"

namespace nodepool::drivers::openstack {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr std::size_t kMaxTokenBytes = 4 << 20;

}  // namespace

net::HttpCall NewCall(const CloudConfig& cloud, std::string method, std::string url) {
  net::HttpCall call;
  call.method = std::move(method);
  call.url = std::move(url);
  call.headers.emplace_back("Accept", "application/json");
  call.tls = std::make_shared<const net::TlsSettings>(cloud.tls);
  if (cloud.api_timeout) {
    call.timeouts.connect = *cloud.api_timeout;
    call.timeouts.answer = *cloud.api_timeout;
    call.timeouts.stall = *cloud.api_timeout;
  }
  return call;
}

Token ReadToken(const net::HttpReply& reply, std::string_view where) {
  boost::system::error_code error;
  json::value body = json::parse(reply.body, error);
  const json::object* content = error ? nullptr : ObjectIn(body, "token");
  Token token;
  token.text = reply.Header("x-subject-token");
  if (content == nullptr || token.text.empty()) {
    throw Error(Verdict::kRetry, fmt::format("{}: the answer, {}, contains no token", where, reply.status));
  }
  auto expires = ParseIso8601(TextIn(*content, "expires_at"));
  if (!expires)
    throw Error(Verdict::kRetry, fmt::format("{}: the answer contains a token without expiry", where));
  token.expires = *expires;
  if (const json::object* project = ObjectIn(*content, "project")) token.project_id = TextIn(*project, "id");
  if (const json::array* catalog = ArrayIn(*content, "catalog")) token.catalog = *catalog;
  return token;
}

TokenSource::TokenSource(Loop& loop, net::HttpClient& http, const CloudConfig& cloud)
    : http_(http), cloud_(cloud), tokens_(loop, [this] { return Fetch(); }) {}

Task<TokenSource::Renew> TokenSource::Sign(net::HttpCall& call) {
  std::shared_ptr<const Token> token = co_await tokens_.Get();
  if (token->text.empty()) co_return nullptr;
  call.headers.emplace_back("X-Auth-Token", token->text);
  co_return [this, token](const net::HttpReply&) { tokens_.Discard(token); };
}

Task<Token> TokenSource::Fetch() {
  if (cloud_.credentials.type == "none") co_return Token();
  std::string url = co_await TokenUrl();
  net::HttpCall call = NewCall(cloud_, "POST", url + "/auth/tokens");
  call.max_bytes = kMaxTokenBytes;
  call.may_be_repeated = true;  // a token that nobody uses ends by itself
  call.headers.emplace_back("Content-Type", "application/json");
  if (cloud_.credentials.type == "token") {
    call.headers.emplace_back("X-Auth-Token", cloud_.credentials.Get("token"));
  }
  call.body = json::serialize(TokenRequest(cloud_.credentials));
  net::HttpReply reply = co_await Send(std::move(call));
  std::string where = fmt::format("cloud {}: logging in at {}", cloud_.name, net::UrlForLog(url));
  if (reply.status >= 400) throw MakeApiError(where, reply.status, ReadFault(reply.status, reply.body));
  Token token = ReadToken(reply, where);
  logger_.Debug("Logged in to cloud {}", cloud_.name);
  co_return token;
}

// HttpError names the call; this adds what it was for.
Task<net::HttpReply> TokenSource::Send(net::HttpCall call) {
  Outcome<net::HttpReply> reply = co_await Attempt(http_.Send(std::move(call)));
  if (reply) co_return std::move(*reply);
  throw Error(reply.error().verdict(),
              fmt::format("cloud {}: logging in: {}", cloud_.name, reply.error().message()));
}

Task<std::string> TokenSource::TokenUrl() {
  if (url_.empty()) {
    std::string configured = cloud_.credentials.Get("auth_url");
    while (configured.ends_with('/')) configured.pop_back();
    if (!configured.ends_with("/v3")) configured = co_await DiscoverUrl();
    url_ = configured;
  }
  co_return url_;
}

// The URL of the supported version, if the configured address names none.
Task<std::string> TokenSource::DiscoverUrl() {
  std::string url = cloud_.credentials.Get("auth_url");
  net::HttpCall call = NewCall(cloud_, "GET", url);
  call.max_bytes = kMaxTokenBytes;
  net::HttpReply reply = co_await Send(std::move(call));
  while (url.ends_with('/')) url.pop_back();
  std::vector<Version> versions = ReadVersions(reply.body);
  if (versions.empty()) co_return url + "/v3";
  const Version* best = BestVersion(versions, 3);
  if (best == nullptr) {
    throw Error(Verdict::kInvalid,
                fmt::format("cloud {}: {} does not speak version 3 of the identity service", cloud_.name,
                            net::UrlForLog(url)));
  }
  co_return VersionUrl(url, *best, "/v3");
}

namespace {

constexpr std::size_t kMaxDocument = 1 << 20;

std::string ReplaceAll(std::string text, std::string_view what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string WithoutSlash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

// The address without the project, where versions are listed.
std::string WithoutProject(const std::string& url, const std::string& project) {
  if (project.empty()) return url;
  for (const std::string& suffix : {"/" + project, "/AUTH_" + project}) {
    if (url.ends_with(suffix)) return url.substr(0, url.size() - suffix.size());
  }
  return url;
}

int MajorOf(Service service) { return service == Service::kBlockStorage ? 3 : 2; }

}  // namespace

Endpoints::Endpoints(net::HttpClient& http, const CloudConfig& cloud, TokenSource& tokens)
    : http_(http),
      cloud_(cloud),
      tokens_(tokens),
      known_([this](Service service) { return Discover(service); }) {}

Task<std::shared_ptr<const Endpoint>> Endpoints::Of(Service service) { return known_.Get(service); }

Task<std::vector<Version>> Endpoints::Ask(std::string url, std::string token) {
  net::HttpCall call = NewCall(cloud_, "GET", url);
  call.max_bytes = kMaxDocument;
  net::HttpCall again = call;
  net::HttpReply reply = co_await http_.Send(std::move(call));
  if (reply.status == 401 && !token.empty()) {
    again.headers.emplace_back("X-Auth-Token", token);
    reply = co_await http_.Send(std::move(again));
  }
  co_return ReadVersions(reply.body);
}

Task<std::shared_ptr<const Endpoint>> Endpoints::Discover(Service service) {
  const ServiceSettings& settings = cloud_.Of(service);
  if (!settings.exists) co_return nullptr;
  std::shared_ptr<const Token> token = co_await tokens_.Get();
  std::string url = settings.endpoint_override;
  if (url.empty() && cloud_.credentials.type == "none") url = cloud_.credentials.Get("endpoint");
  if (url.empty()) {
    std::optional<std::string> listed = FindEndpoint(token->catalog, cloud_, service);
    if (!listed) co_return nullptr;
    url = *listed;
  }
  url = ReplaceAll(std::move(url), "%(project_id)s", token->project_id);
  url = WithoutSlash(ReplaceAll(std::move(url), "$(project_id)s", token->project_id));
  auto endpoint = std::make_shared<Endpoint>();
  endpoint->url = url;
  // The network service has one version, and its calls name no microversion: there is nothing to ask for.
  if (service == Service::kNetwork) {
    if (!url.ends_with("/v2.0")) endpoint->url += "/v2.0";
    co_return endpoint;
  }
  std::string root = WithoutProject(url, token->project_id);
  bool is_versioned = VersionOfPath(PathOf(root)).major == MajorOf(service);
  // The range matters only where calls name microversions (driver-openstack.md 5.3).
  bool needs_range = service == Service::kCompute || settings.default_microversion != VersionNumber();
  if (is_versioned && !needs_range) co_return endpoint;
  if (!settings.endpoint_override.empty() && !settings.api_version.empty()) co_return endpoint;
  std::string document = is_versioned || service == Service::kCompute ? root + "/" : root;
  std::string text = token->text;
  std::vector<Version> versions = co_await Ask(std::move(document), std::move(text));
  const Version* best = BestVersion(versions, MajorOf(service));
  if (best != nullptr) {
    endpoint->min = best->min;
    endpoint->max = best->max;
  }
  // The document was read for the range alone.
  if (is_versioned) co_return endpoint;
  if (best == nullptr && !versions.empty()) {
    throw Error(Verdict::kInvalid, "cloud " + cloud_.name + ": " + net::UrlForLog(root) +
                                       " offers no version of the " + std::string(ToString(service)) +
                                       " service that can be used");
  }
  // Where there is no document, the usual version is tried.
  Version fallback;
  endpoint->url =
      VersionUrl(root, best == nullptr ? fallback : *best,
                 service == Service::kCompute ? "/v2.1" : "/v" + std::to_string(MajorOf(service)));
  co_return endpoint;
}

namespace json = boost::json;

namespace {

// In order of preference.
std::vector<std::string> TypesOf(const CloudConfig& cloud, Service service) {
  const ServiceSettings& settings = cloud.Of(service);
  if (!settings.type.empty()) return {settings.type};
  if (service == Service::kBlockStorage) {
    return {"block-storage", "volumev3", "volumev2", "volume", "block-store"};
  }
  return {std::string(ToString(service))};
}

std::string EndpointOf(const json::object& service, const std::string& interface, const std::string& region) {
  const json::array* endpoints = ArrayIn(service, "endpoints");
  if (endpoints == nullptr) return "";
  for (const json::value& item : *endpoints) {
    if (!item.is_object()) continue;
    const json::object& endpoint = item.as_object();
    std::string place = TextIn(endpoint, "region_id");
    if (place.empty()) place = TextIn(endpoint, "region");
    bool fits = TextIn(endpoint, "interface") == interface && (region.empty() || place == region);
    std::string url = TextIn(endpoint, "url");
    if (fits && !url.empty()) return url;
  }
  return "";
}

}  // namespace

std::optional<std::string> FindEndpoint(const json::array& catalog, const CloudConfig& cloud,
                                        Service service) {
  const ServiceSettings& settings = cloud.Of(service);
  const std::string& region = settings.region.empty() ? cloud.region : settings.region;
  const auto& interfaces = settings.interfaces.empty() ? cloud.interfaces : settings.interfaces;
  for (const std::string& type : TypesOf(cloud, service)) {
    for (const std::string& interface : interfaces) {
      for (const json::value& item : catalog) {
        if (!item.is_object() || TextIn(item.as_object(), "type") != type) continue;
        std::string name = TextIn(item.as_object(), "name");
        if (!settings.name.empty() && !name.empty() && name != settings.name) continue;
        std::string url = EndpointOf(item.as_object(), interface, region);
        if (!url.empty()) return url;
      }
    }
  }
  return std::nullopt;
}

namespace {

// The max. time of the image service between the last byte and its answer.
constexpr Duration kUploadAnswer = std::chrono::minutes(10);

// The service's name in the header with the microversion.
std::string NameForVersions(Service service) {
  return service == Service::kBlockStorage ? "volume" : std::string(ToString(service));
}

api::ApiClient::Options ClientOptions(const CloudConfig& cloud, Session::Options options) {
  api::ApiClient::Options result;
  result.cloud = cloud.name;
  result.read_fault = &ReadFault;
  result.metrics = std::move(options.metrics);
  if (options.rate) {
    auto interval = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*options.rate));
    result.change_rate = api::RateLimiter::Settings{interval};
  }
  return result;
}

}  // namespace

Session::Session(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, CloudConfig cloud,
                 Options options)
    : loop_(loop),
      cloud_(std::move(cloud)),
      tokens_(loop, http, cloud_),
      endpoints_(http, cloud_, tokens_),
      client_(loop, pool, random, http, tokens_, log::Logger("nodepool.OpenStackAdapter"),
              ClientOptions(cloud_, std::move(options))) {}

Task<bool> Session::Has(Service service) {
  std::shared_ptr<const Endpoint> endpoint = co_await endpoints_.Of(service);
  co_return endpoint != nullptr;
}

Task<bool> Session::TakesMicroversion(VersionNumber version) {
  std::shared_ptr<const Endpoint> endpoint = co_await endpoints_.Of(Service::kCompute);
  VersionNumber configured = cloud_.Of(Service::kCompute).default_microversion;
  co_return (endpoint != nullptr) && version <= (configured == VersionNumber() ? endpoint->max : configured);
}

Task<std::string> Session::ProjectId() {
  std::shared_ptr<const Token> token = co_await tokens_.Get();
  co_return token->project_id;
}

Task<ApiReply> Session::Call(ApiCall call) {
  std::shared_ptr<const Endpoint> endpoint = co_await endpoints_.Of(call.service);
  if (endpoint == nullptr) {
    throw Error(Verdict::kInvalid, fmt::format("cloud {} has no {} service in its catalog{}", cloud_.name,
                                               ToString(call.service),
                                               cloud_.region.empty() ? "" : " of region " + cloud_.region));
  }
  api::ApiRequest request;
  request.service = ToString(call.service);
  request.name = ApiName(call.path);
  request.text =
      fmt::format("{} {} {} at {}", call.method, request.service, call.path, net::UrlForLog(endpoint->url));
  request.may_be_sent_again = call.may_be_repeated;
  request.retries = cloud_.Of(call.service).status_code_retries.value_or(request.retries);
  request.call = HttpCallFor(std::move(call), *endpoint);
  ApiReply reply = co_await client_.CallJson(std::move(request));
  co_return reply;
}

Task<bool> Session::Delete(Service service, std::string path, VersionNumber microversion) {
  ApiCall call;
  call.service = service;
  call.method = "DELETE";
  call.path = std::move(path);
  call.microversion = microversion;
  co_return co_await api::WasThere(Call(std::move(call)));
}

// Empty: the call names none.
std::string Session::MicroversionFor(const ApiCall& call, const Endpoint& endpoint) const {
  VersionNumber configured = cloud_.Of(call.service).default_microversion;
  if (configured == VersionNumber()) {
    VersionNumber version = std::min(call.microversion, endpoint.max);
    return version == VersionNumber() ? "" : ToString(version);
  }
  bool is_range_known = endpoint.max != VersionNumber();
  if (is_range_known && (configured < endpoint.min || endpoint.max < configured)) {
    throw Error(
        Verdict::kInvalid,
        fmt::format("cloud {}: the default microversion {} of the {} service is not between {} and {}, "
                    "which the service takes",
                    cloud_.name, ToString(configured), ToString(call.service), ToString(endpoint.min),
                    ToString(endpoint.max)));
  }
  return ToString(configured);
}

net::HttpCall Session::HttpCallFor(ApiCall call, const Endpoint& endpoint) const {
  std::string microversion = MicroversionFor(call, endpoint);
  std::string url = endpoint.url + call.path + (call.query.empty() ? "" : "?" + call.query);
  net::HttpCall result = NewCall(cloud_, std::move(call.method), std::move(url));
  if (!microversion.empty()) {
    result.headers.emplace_back("OpenStack-API-Version", NameForVersions(call.service) + " " + microversion);
    if (call.service == Service::kCompute)
      result.headers.emplace_back("X-OpenStack-Nova-API-Version", microversion);
  }
  if (call.body) {
    result.headers.emplace_back("Content-Type", "application/json");
    result.body = boost::json::serialize(*call.body);
  }
  if (call.upload) {
    result.headers.emplace_back("Content-Type", "application/octet-stream");
    result.upload = std::move(call.upload);
    if (call.upload_limit) result.timeouts.total = *call.upload_limit;
    result.timeouts.answer = std::max(result.timeouts.answer, kUploadAnswer);
  }
  return result;
}

bool MentionsQuota(std::string_view text) {
  std::string lower = Lower(std::string(text));
  auto says = [&lower](std::string_view words) { return lower.find(words) != std::string::npos; };
  return says("quota exceeded") || says("number of ports exceeded") || says("overquota") ||
         (says("maximum number of") && says("exceeded")) || (says("quota") && says("exceed"));
}

// {"forbidden": {"message": "...", "code": 403}}, {"NeutronError": {...}}, {"message": "..."};
// neutron may also send a text instead of the mapping.
api::Fault ReadFault(int status, std::string_view body) {
  api::Fault fault;
  fault.text = api::FaultText(body, {"NeutronError", "error"});
  fault.verdict = MentionsQuota(fault.text) ? Verdict::kQuota : api::VerdictOfStatus(status);
  return fault;
}

std::string ApiName(const std::string& path) {
  std::vector<std::string> parts = Split(path.starts_with('/') ? path.substr(1) : path, '/');
  if (parts.empty()) return "discovery";
  if (parts.back() == "detail" && parts.size() >= 2) return parts[parts.size() - 2] + "_detail";
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    std::string name = parts[i];
    bool has_id = i + 1 < parts.size();
    if (has_id && name.ends_with('s')) name.pop_back();
    names.push_back(std::move(name));
  }
  return Join(names, "_");
}

namespace json = boost::json;
using driver::cloud::api::QueryOf;

std::string NextQuery(const ApiReply& page, const std::string& collection) {
  if (const json::array* links = ArrayIn(page.body, collection + "_links")) {
    for (const json::value& link : *links) {
      if (link.is_object() && TextIn(link.as_object(), "rel") == "next") {
        return QueryOf(TextIn(link.as_object(), "href"));
      }
    }
  }
  std::string next = page.body.is_object() ? TextIn(page.body.as_object(), "next") : "";
  return QueryOf(next.empty() ? driver::cloud::api::NextLink(page.headers) : next);
}

}  // namespace nodepool::drivers::openstack
