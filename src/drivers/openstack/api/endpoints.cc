#include "drivers/openstack/api/endpoints.h"

#include <algorithm>
#include <vector>

#include "base/json_fields.h"

namespace nodepool::drivers::openstack {

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
  if (service == Service::kNetwork) {
    if (!url.ends_with("/v2.0")) endpoint->url += "/v2.0";
    co_return endpoint;
  }
  std::string root = WithoutProject(url, token->project_id);
  bool is_versioned = VersionOfPath(PathOf(root)).major == MajorOf(service);
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
  if (is_versioned) co_return endpoint;
  if (best == nullptr && !versions.empty()) {
    throw Error(Verdict::kInvalid, "cloud " + cloud_.name + ": " + net::UrlForLog(root) +
                                       " offers no version of the " + std::string(ToString(service)) +
                                       " service that can be used");
  }
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

}  // namespace nodepool::drivers::openstack
