#include "drivers/aws/api/services.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <limits>
#include <utility>

#include "base/json_fields.h"
#include "base/text.h"
#include "drivers/aws/api/service_calls.h"

namespace nodepool::drivers::aws {

namespace api = driver::cloud::api;
namespace json = boost::json;

namespace {

constexpr const char* kVersion = "2016-11-15";
constexpr double kReadsPerChange = 10;

api::ApiClient::Options Ec2ClientOptions(const Account& account, const Ec2::Options& options) {
  api::ApiClient::Options result = ClientOptions(account, &ReadFault, options.metrics);
  result.change_rate = api::RateLimiter::PerSecond(options.rate);
  result.read_rate = api::RateLimiter::PerSecond(options.rate * kReadsPerChange);
  return result;
}

}  // namespace

Ec2::Ec2(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, const Account& account,
         RequestSigner& signer, log::Logger logger, Options options)
    : pool_(pool),
      account_(account),
      client_(loop, pool, random, http, signer, std::move(logger), Ec2ClientOptions(account, options)) {}

std::string Ec2::Describe(const Query& query) const {
  return fmt::format("{} at {}", query.action(), net::UrlForLog(account_.ec2_url));
}

Task<> Ec2::Call(Query query) { co_await Send(std::move(query)); }

Task<Ec2::Answer> Ec2::Send(Query query) {
  Answer answer;
  answer.call = Describe(query);
  api::ApiRequest request;
  request.service = kEc2.name;
  request.budget = query.reads() ? "ec2 reads" : "ec2 changes";
  request.name = query.action();
  request.text = answer.call;
  request.call = FormCall(account_.ec2_url, query, kVersion, account_.tls);
  // A throttled call has done nothing, and its caller has a deadline.
  request.retries = std::numeric_limits<int>::max();
  request.only_reads = query.reads();
  request.frees = query.frees();
  // What creates has a client token; the other changes say how things shall be.
  request.may_be_sent_again = true;
  net::HttpReply reply = co_await client_.Call(std::move(request));
  answer.request_id = RequestIdOf(reply);
  answer.body = std::move(reply.body);
  co_return answer;
}

pugi::xml_document Ec2::ParseAnswer(const Answer& answer) {
  return ParseXml(answer.body, answer.call, answer.request_id);
}

std::string Ec2::NextToken(const pugi::xml_node& root) { return TextAt(root, {"nextToken"}); }

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

namespace {

constexpr Duration kRenewBefore = std::chrono::minutes(15);

driver::cloud::api::CallMetrics MetricsOf(const driver::cloud::AdapterEnvironment& environment,
                                          const AwsConfig& config) {
  return {environment.observer, config.name, "aws"};
}

}  // namespace

Services::Services(const driver::cloud::AdapterEnvironment& environment, const AwsConfig& config,
                   Account account, Variables variables, std::unique_ptr<net::HttpClient> http,
                   const log::Logger& logger)
    : account_(std::move(account)),
      http_(std::move(http)),
      clock_(environment.loop, logger, kCloudName),
      fetcher_(environment.loop, *http_, clock_, account_, std::move(variables),
               config.profile_name.has_value()),
      credentials_(
          environment.loop, [this] { return fetcher_.Fetch(); }, kRenewBefore),
      ec2_signer_(clock_, credentials_, SigningScope{account_.region, kEc2.name}),
      ec2_(environment.loop, environment.blocking_pool, environment.random, *http_, account_, ec2_signer_,
           logger, Ec2::Options{config.rate, MetricsOf(environment, config)}),
      quotas_signer_(clock_, credentials_, SigningScope{account_.region, kServiceQuotas.name}),
      quotas_(environment.loop, environment.blocking_pool, environment.random, *http_, account_,
              quotas_signer_, logger, config.rate, MetricsOf(environment, config)),
      ebs_signer_(clock_, credentials_, SigningScope{account_.region, kEbs.name}),
      ebs_(environment.loop, environment.blocking_pool, environment.random, *http_, account_, ebs_signer_,
           logger, MetricsOf(environment, config)),
      s3_signer_(clock_, credentials_, SigningScope{account_.region, kS3.name}) {
  if (!config.bucket) return;
  s3_.emplace(environment.loop, environment.blocking_pool, environment.random, *http_, account_, s3_signer_,
              logger, MetricsOf(environment, config), *config.bucket);
}

}  // namespace nodepool::drivers::aws
