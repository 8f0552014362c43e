#include "drivers/aws/api/service_quotas.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <limits>

#include "base/json_fields.h"
#include "base/text.h"
#include "drivers/aws/api/client_options.h"
#include "drivers/aws/api/faults.h"

namespace nodepool::drivers::aws {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr const char* kTarget = "ServiceQuotasV20190624.ListServiceQuotas";

api::ApiClient::Options QuotaClientOptions(const Account& account, double rate, api::CallMetrics metrics) {
  api::ApiClient::Options options = ClientOptions(account, &ReadJsonFault, std::move(metrics));
  options.read_rate = driver::cloud::api::RateLimiter::PerSecond(rate);
  return options;
}

}  // namespace

std::string CodeOfType(std::string type) {
  if (std::size_t hash = type.rfind('#'); hash != std::string::npos) type.erase(0, hash + 1);
  return Excerpt(type.substr(0, type.find(':')), 100);
}

api::Fault ReadJsonFault(int status, std::string_view body) {
  boost::system::error_code malformed;
  json::value parsed = json::parse(body.substr(0, 64 * 1024), malformed);
  std::string code;
  std::string message;
  if (!malformed && parsed.is_object()) {
    code = CodeOfType(TextIn(parsed.get_object(), "__type"));
    message = TextIn(parsed.get_object(), "message");
    if (message.empty()) message = TextIn(parsed.get_object(), "Message");
  }
  if (code.empty()) return api::ReadFault(status, body);
  return FaultOf(status, std::move(code), std::move(message));
}

ServiceQuotas::ServiceQuotas(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http,
                             const Account& account, RequestSigner& signer, log::Logger logger, double rate,
                             api::CallMetrics metrics)
    : account_(account),
      client_(loop, pool, random, http, signer, std::move(logger),
              QuotaClientOptions(account, rate, std::move(metrics))) {}

Task<std::map<std::string, double>> ServiceQuotas::List(std::string service) {
  auto read = [this, service](std::string next) { return ReadPage(service, std::move(next)); };
  std::vector<Quota> list = co_await api::ReadPages<Quota>("quotas", std::move(read));
  std::map<std::string, double> quotas(list.begin(), list.end());
  co_return quotas;
}

Task<api::Page<ServiceQuotas::Quota>> ServiceQuotas::ReadPage(std::string service, std::string next) {
  json::object body{{"ServiceCode", service}};
  if (!next.empty()) body["NextToken"] = next;
  api::ApiRequest request;
  request.service = kServiceQuotas.name;
  request.name = "ListServiceQuotas";
  request.text = fmt::format("ListServiceQuotas of {} at {}", service, net::UrlForLog(account_.quotas_url));
  request.only_reads = true;
  request.call.method = "POST";
  request.call.url = account_.quotas_url + "/";
  request.call.headers = {{"Content-Type", "application/x-amz-json-1.1"}, {"X-Amz-Target", kTarget}};
  request.call.body = json::serialize(body);
  request.call.tls = account_.tls;
  api::ApiReply reply = co_await client_.CallJson(std::move(request));
  api::Page<Quota> page;
  page.bytes = reply.bytes;
  if (!reply.body.is_object()) co_return page;
  const json::object& answer = reply.body.get_object();
  page.next = TextIn(answer, "NextToken");
  const json::array* quotas = ArrayIn(answer, "Quotas");
  if (quotas == nullptr) co_return page;
  for (const json::value& quota : *quotas) {
    if (!quota.is_object() || TextIn(quota.get_object(), "QuotaCode").empty()) continue;
    page.items.emplace_back(TextIn(quota.get_object(), "QuotaCode"), NumberIn(quota.get_object(), "Value"));
  }
  co_return page;
}

}  // namespace nodepool::drivers::aws
