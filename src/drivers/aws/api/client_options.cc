#include "drivers/aws/api/client_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "drivers/aws/api/xml.h"

namespace nodepool::drivers::aws {

namespace api = driver::cloud::api;

api::ApiClient::Options ClientOptions(const Account& account, api::FaultReader read_fault,
                                      api::CallMetrics metrics, int least_repeats) {
  api::ApiClient::Options options;
  options.cloud = "AWS " + account.region;
  options.read_fault = std::move(read_fault);
  options.request_id = &RequestIdOf;
  options.remedies = RemediesOf(account);
  options.network_repeats = std::max(account.max_attempts - 1, least_repeats);
  options.server_error_repeats = options.network_repeats;
  options.metrics = std::move(metrics);
  return options;
}

std::string RequestIdOf(const net::HttpReply& answer) {
  for (const char* name : {"x-amzn-requestid", "x-amz-request-id"}) {
    const std::string& id = answer.Header(name);
    if (!id.empty()) return Excerpt(id, 100);
  }
  return "";
}

api::Remedies RemediesOf(const Account& account) {
  api::Remedies remedies;
  remedies.unknown_host = fmt::format(
      "check region-name ({}) and the AWS_ENDPOINT_URL settings: AWS has no such address, or this host's "
      "name "
      "service does not work",
      Excerpt(account.region, 50));
  remedies.no_answer =
      "check the way from this host to AWS: network, firewall, HTTPS_PROXY, the AWS_ENDPOINT_URL settings";
  remedies.odd_answer = kOddAnswer;
  return remedies;
}

}  // namespace nodepool::drivers::aws
