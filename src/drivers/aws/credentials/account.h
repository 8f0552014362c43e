#pragma once

#include <memory>
#include <optional>
#include <string>

#include "drivers/aws/credentials/credentials.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::aws {

// In logs, errors and records.
inline constexpr const char* kCloudName = "AWS";

// A service of AWS: how it is called in signatures, host names and variables.
struct ServiceNames {
  const char* name;      // in host names and signatures
  const char* setting;   // in files
  const char* variable;  // AWS_ENDPOINT_URL_<variable>
};
inline constexpr ServiceNames kEc2{"ec2", "ec2", "EC2"};
inline constexpr ServiceNames kServiceQuotas{"servicequotas", "service_quotas", "SERVICE_QUOTAS"};
inline constexpr ServiceNames kSts{"sts", "sts", "STS"};
inline constexpr ServiceNames kS3{"s3", "s3", "S3"};
inline constexpr ServiceNames kEbs{"ebs", "ebs", "EBS"};

// Where a provider's calls go (driver-aws.md 3.1, 3.6). Contains no secrets.
struct Account {
  std::string region;
  std::string profile;
  std::string ec2_url;  // without a slash at the end
  std::string quotas_url;
  std::string sts_url;
  std::string s3_url;
  std::string ebs_url;
  bool puts_bucket_in_path = false;             // of S3's URLs, in place of the host
  std::shared_ptr<const net::TlsSettings> tls;  // null: the defaults
  int max_attempts = 5;                         // of a call, in total
};

// Error(kInvalid): no region, or a profile that does not exist.
Account ResolveAccount(const Profiles& profiles, const Variables& variables,
                       const std::optional<std::string>& region, const std::optional<std::string>& profile);

}  // namespace nodepool::drivers::aws
