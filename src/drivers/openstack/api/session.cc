#include "drivers/openstack/api/session.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "base/text.h"
#include "driver/cloud/api/url_text.h"

namespace nodepool::drivers::openstack {

namespace api = driver::cloud::api;

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
