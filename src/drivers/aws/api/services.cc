#include "drivers/aws/api/services.h"

#include <utility>

namespace nodepool::drivers::aws {

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
