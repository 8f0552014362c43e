#include "drivers/gce/api/compute.h"

#include <fmt/format.h>

#include "base/find_or_empty.h"
#include "base/json_entries.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/gce/api/faults.h"

namespace nodepool::drivers::gce {

namespace api = driver::cloud::api;
namespace json = boost::json;
using api::PercentEncoded;

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

}  // namespace nodepool::drivers::gce
