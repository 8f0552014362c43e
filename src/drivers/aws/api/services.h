#pragma once

#include <memory>
#include <optional>
#include <string>

#include "driver/cloud/framework.h"
#include "drivers/aws/api/ebs.h"
#include "drivers/aws/api/ec2.h"
#include "drivers/aws/api/s3.h"
#include "drivers/aws/api/service_quotas.h"
#include "drivers/aws/api/signature.h"
#include "drivers/aws/config/aws_config.h"
#include "drivers/aws/credentials/account.h"
#include "drivers/aws/credentials/credential_fetcher.h"

namespace nodepool::drivers::aws {

// AWS as one provider calls it: a client of each service, which all sign with the credentials of one account.
class Services {
 public:
  // `http` is used only here. What `environment` refers to outlives it, and so does `config`.
  Services(const driver::cloud::AdapterEnvironment& environment, const AwsConfig& config, Account account,
           Variables variables, std::unique_ptr<net::HttpClient> http, const log::Logger& logger);

  const std::string& region() const { return account_.region; }
  // AWS's time, as far as it is known to differ from this host's.
  WallTime Now() const { return clock_.Now(); }
  Ec2& ec2() { return ec2_; }
  Ebs& ebs() { return ebs_; }
  ServiceQuotas& quotas() { return quotas_; }
  // The bucket of `object-storage`; null: it is not configured.
  S3* s3() { return s3_ ? &*s3_ : nullptr; }

 private:
  Account account_;
  std::unique_ptr<net::HttpClient> http_;
  ServerClock clock_;
  CredentialFetcher fetcher_;
  RequestSigner::CredentialSource credentials_;
  RequestSigner ec2_signer_;
  Ec2 ec2_;
  RequestSigner quotas_signer_;
  ServiceQuotas quotas_;
  RequestSigner ebs_signer_;
  Ebs ebs_;
  RequestSigner s3_signer_;
  std::optional<S3> s3_;
};

}  // namespace nodepool::drivers::aws
