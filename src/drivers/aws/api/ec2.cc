#include "drivers/aws/api/ec2.h"

#include <fmt/format.h>

#include <limits>

#include "drivers/aws/api/client_options.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/query.h"
#include "drivers/aws/api/xml.h"

namespace nodepool::drivers::aws {

namespace api = driver::cloud::api;

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

}  // namespace nodepool::drivers::aws
