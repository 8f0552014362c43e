#include "drivers/aws/api/ec2.h"

#include <fmt/format.h>

#include <limits>

#include "drivers/aws/api/call_rate.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/form_call.h"
#include "drivers/aws/api/xml.h"

namespace nodepool::drivers::aws {

namespace api = driver::cloud::api;

namespace {

constexpr const char* kVersion = "2016-11-15";
constexpr double kReadsPerChange = 10;

api::ApiClient::Options ClientOptions(const Account& account, const Ec2::Options& options) {
  api::ApiClient::Options result;
  result.cloud = "AWS " + account.region;
  result.read_fault = &ReadFault;
  result.change_rate = RateOf(options.rate);
  result.read_rate = RateOf(options.rate * kReadsPerChange);
  result.network_repeats = account.max_attempts - 1;
  result.server_error_repeats = account.max_attempts - 1;
  result.metrics = options.metrics;
  return result;
}

}  // namespace

Ec2::Ec2(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, const Account& account,
         RequestSigner& signer, log::Logger logger, Options options)
    : pool_(pool),
      account_(account),
      client_(loop, pool, random, http, signer, std::move(logger), ClientOptions(account, options)) {}

std::string Ec2::Describe(const Query& query) const {
  return fmt::format("{} at {}", query.action(), net::UrlForLog(account_.ec2_url));
}

Task<> Ec2::Call(Query query) { co_await Send(std::move(query)); }

Task<std::string> Ec2::Send(Query query) {
  api::ApiRequest request;
  request.service = kEc2.name;
  request.budget = query.reads() ? "ec2 reads" : "ec2 changes";
  request.name = query.action();
  request.text = Describe(query);
  request.call = FormCall(account_.ec2_url, query, kVersion, account_.tls);
  // A throttled call has done nothing, and its caller has a deadline.
  request.retries = std::numeric_limits<int>::max();
  request.only_reads = query.reads();
  request.frees = query.frees();
  // What creates has a client token; the other changes say how things shall be.
  request.may_be_sent_again = true;
  net::HttpReply reply = co_await client_.Call(std::move(request));
  co_return std::move(reply.body);
}

pugi::xml_document Ec2::ParseAnswer(const std::string& answer, const std::string& call) {
  return ParseXml(answer, call);
}

std::string Ec2::NextToken(const pugi::xml_node& root) { return TextAt(root, {"nextToken"}); }

}  // namespace nodepool::drivers::aws
