#include "drivers/gce/api/compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "base/find_or_empty.h"
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

// Empty: the variable is not set.
std::string UrlIn(const Variables& variables, const std::string& name) {
  return api::ServiceUrl(FindOrEmpty(variables, name), name);
}

constexpr std::size_t kMostErrors = 20;

// Capacity before quota before anything else.
int RankOf(const std::string& code, const std::string& text) {
  if (MeansNoCapacity(code, text)) return 3;
  return MeansQuota(code) ? 2 : 1;
}

// What an error's details say beside its message.
std::string DetailsOf(const json::object& error) {
  std::string text;
  const json::array* details = ArrayIn(error, "errorDetails");
  for (std::size_t i = 0; details != nullptr && i < std::min(details->size(), kMostErrors); ++i) {
    if (const json::object* quota = ObjectIn((*details)[i], "quotaInfo"))
      text += fmt::format("; quota {}, limit {}", TextIn(*quota, "metricName"), NumberIn(*quota, "limit"));
    const json::object* info = ObjectIn((*details)[i], "errorInfo");
    const json::object* facts = info == nullptr ? nullptr : ObjectIn(*info, "metadatas");
    std::string zones = facts == nullptr ? "" : TextIn(*facts, "zonesAvailable");
    if (!zones.empty()) text += "; zones that have it: " + zones;
  }
  return Excerpt(text, 300);
}

void ReadErrors(const json::object& entry, Operation& operation) {
  const json::object* failure = ObjectIn(entry, "error");
  if (failure == nullptr) return;
  operation.code = "unknown";
  operation.message = Excerpt(TextIn(entry, "httpErrorMessage"), 300);
  const json::array* errors = ArrayIn(*failure, "errors");
  int rank = 0;
  for (std::size_t i = 0; errors != nullptr && i < std::min(errors->size(), kMostErrors); ++i) {
    const json::object* error = (*errors)[i].if_object();
    if (error == nullptr) continue;
    std::string code = Excerpt(TextIn(*error, "code"), 100);
    std::string text = Excerpt(TextIn(*error, "message"), 600);
    if (RankOf(code, text) <= rank) continue;
    rank = RankOf(code, text);
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

std::string LastSegment(const std::string& url) {
  std::size_t slash = url.rfind('/');
  return slash == std::string::npos ? url : url.substr(slash + 1);
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

api::ApiClient::Options ClientOptions(const ClientSettings& settings, int repeats) {
  api::ApiClient::Options options;
  options.cloud = "Google";
  options.read_fault = &ReadFault;
  options.change_rate = api::RateLimiter::PerSecond(settings.rate);
  options.read_rate = api::RateLimiter::PerSecond(settings.rate * kReadsPerChange);
  options.network_repeats = repeats;
  options.server_error_repeats = repeats;
  options.metrics = settings.metrics;
  options.remedies.unknown_host = "check this host's name service, and GCE_ENDPOINT if it is set";
  options.remedies.no_answer = "check the way from this host to Google: network, firewall, HTTPS_PROXY";
  options.remedies.odd_answer = "a proxy or firewall on the way may have answered in place of Google";
  return options;
}

const json::object& ObjectOf(const api::ApiReply& reply, const std::string& action) {
  const json::object* object = reply.body.if_object();
  if (object == nullptr) throw Error(Verdict::kRetry, action + " was answered without an object");
  return *object;
}

Compute::Compute(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http,
                 const Endpoints& endpoints, std::string project, api::Signer& signer, log::Logger logger,
                 ClientSettings settings)
    : random_(random),
      endpoints_(endpoints),
      project_(std::move(project)),
      client_(loop, pool, random, http, signer, std::move(logger), ClientOptions(settings, kPassingFaults)) {}

Task<api::ApiReply> Compute::Send(std::string method, ComputeCall call, std::string body) {
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
  if (!body.empty()) request.call.headers.emplace_back("Content-Type", "application/json");
  request.call.body = std::move(body);
  api::ApiReply reply = co_await client_.CallJson(std::move(request));
  co_return reply;
}

Task<json::object> Compute::Get(ComputeCall call) {
  std::string action = call.action;
  api::ApiReply reply = co_await Send("GET", std::move(call), "");
  ObjectOf(reply, action);
  co_return std::move(reply.body.get_object());
}

Task<Operation> Compute::Insert(ComputeCall call, const json::object& body) {
  return Change("POST", std::move(call), json::serialize(body));
}

Task<Operation> Compute::Delete(ComputeCall call) { return Change("DELETE", std::move(call), ""); }

Task<Operation> Compute::Change(std::string method, ComputeCall call, std::string body) {
  std::string action = call.action;
  call.query = "requestId=" + random_.Uuid();
  api::ApiReply reply = co_await Send(std::move(method), std::move(call), std::move(body));
  Operation operation = ReadOperation(ObjectOf(reply, action));
  if (operation.name.empty()) throw Error(Verdict::kRetry, action + " was answered without an operation");
  co_return operation;
}

Task<Operation> Compute::ReadAgain(std::string place, std::string operation) {
  ComputeCall call{place == "global" ? "globalOperations.get" : "zoneOperations.get",
                   place + "/operations/" + operation};
  json::object answer = co_await Get(std::move(call));
  co_return ReadOperation(answer);
}

Task<api::ApiReply> Compute::SendForPage(ComputeCall call, std::string filter, std::string next) {
  call.query = fmt::format("maxResults={}", kPageSize);
  if (!filter.empty()) call.query += "&filter=" + PercentEncoded(filter);
  if (!next.empty()) call.query += "&pageToken=" + PercentEncoded(next);
  std::string action = call.action;
  api::ApiReply reply = co_await Send("GET", std::move(call), "");
  const json::object* warning = ObjectIn(reply.body, "warning");
  if (warning != nullptr && TextIn(*warning, "code") == "UNREACHABLE")
    throw Error(Verdict::kRetry, action + ": Google cannot reach all of it now");
  co_return reply;
}

}  // namespace nodepool::drivers::gce
