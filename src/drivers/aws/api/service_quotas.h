#pragma once

#include <map>
#include <string>
#include <string_view>

#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/paging.h"
#include "drivers/aws/api/signature.h"
#include "drivers/aws/credentials/account.h"

namespace nodepool::drivers::aws {

// Reads a refusal of a service that speaks JSON: {"__type": "prefix#Code", "Message": "..."},
// driver-aws.md 5.2.
driver::cloud::api::Fault ReadJsonFault(int status, std::string_view body);
// "com.amazon.coral.service#AccessDeniedException:http://..." without what is around the code.
std::string CodeOfType(std::string type);

// The limits of an account, from the service that has them (driver-aws.md 5.2).
class ServiceQuotas {
 public:
  // `rate`: calls per second; 0: unlimited. Everything outlives it.
  ServiceQuotas(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, const Account& account,
                RequestSigner& signer, log::Logger logger, double rate,
                driver::cloud::api::CallMetrics metrics);

  // All of a service, by code, in the units of the service. "ec2": virtual CPUs; "ebs": TiB, and operations
  // per second. Errors: those of ApiClient::CallJson.
  Task<std::map<std::string, double>> List(std::string service);

 private:
  using Quota = std::pair<std::string, double>;
  Task<driver::cloud::api::Page<Quota>> ReadPage(std::string service, std::string next);

  const Account& account_;
  driver::cloud::api::ApiClient client_;
};

}  // namespace nodepool::drivers::aws
