#include "drivers/aws/aws_cloud.h"

#include "base/json_fields.h"
#include "driver/cloud/launch/instance.h"

namespace nodepool::drivers::aws {

namespace {

constexpr Duration kRenewBefore = std::chrono::minutes(15);
constexpr Duration kRecent = std::chrono::minutes(5);
constexpr const char* kInstanceKey = "instance";
constexpr const char* kHostKey = "host";
constexpr const char* kCloudName = "AWS";

}  // namespace

AwsCloud::AwsCloud(driver::cloud::AdapterEnvironment for_environment,
                   std::shared_ptr<const AwsConfig> provider, Account for_account, Variables variables,
                   std::unique_ptr<net::HttpClient> client)
    : environment(std::move(for_environment)),
      config(std::move(provider)),
      account(std::move(for_account)),
      http(std::move(client)),
      clock(environment.loop, logger, kCloudName),
      fetcher(environment.loop, *http, clock, account, std::move(variables),
              config->profile_name.has_value()),
      credentials(
          environment.loop, [this] { return fetcher.Fetch(); }, kRenewBefore),
      ec2_signer(clock, credentials, SigningScope{account.region, kEc2.name}),
      ec2(environment.loop, environment.blocking_pool, environment.random, *http, account, ec2_signer, logger,
          Ec2::Options{config->rate, {environment.observer, config->name, "aws"}}),
      quotas_signer(clock, credentials, SigningScope{account.region, kServiceQuotas.name}),
      quotas(environment.loop, environment.blocking_pool, environment.random, *http, account, quotas_signer,
             logger, config->rate, {environment.observer, config->name, "aws"}),
      s3_signer(clock, credentials, SigningScope{account.region, kS3.name}),
      ebs_signer(clock, credentials, SigningScope{account.region, kEbs.name}),
      ebs(environment.loop, environment.blocking_pool, environment.random, *http, account, ebs_signer, logger,
          {environment.observer, config->name, "aws"}),
      tasks(environment.loop, logger),
      types(ec2),
      limits(environment.loop, quotas, logger),
      images(environment.loop, ec2),
      templates(environment, *config, ec2, tasks, logger),
      terminations(ec2, tasks),
      recent(environment.loop, kRecent),
      instances(tasks, environment.random, logger, "instances of provider " + config->name.str(),
                [this] { return ListInstancesOf(ec2, config->name.str()); }),
      hosts(tasks, environment.random, logger, "dedicated hosts of provider " + config->name.str(),
            [this] { return ListHostsOf(ec2, config->name.str()); }) {
  if (!config->bucket) return;
  driver::cloud::api::CallMetrics metrics{environment.observer, config->name, "aws"};
  s3.emplace(environment.loop, environment.blocking_pool, environment.random, *http, account, s3_signer,
             logger, std::move(metrics), *config->bucket);
}

boost::json::value ExternalId(const MachineId& id) {
  boost::json::object external_id;
  if (!id.instance.empty()) external_id[kInstanceKey] = id.instance;
  if (!id.host.empty()) external_id[kHostKey] = id.host;
  return external_id;
}

MachineId ReadExternalId(const boost::json::value& external_id) {
  if (external_id.is_string()) return {std::string(external_id.as_string()), ""};
  if (!external_id.is_object()) return {};
  return {TextIn(external_id.as_object(), kInstanceKey), TextIn(external_id.as_object(), kHostKey)};
}

driver::cloud::Instance Describe(const AwsCloud& cloud, const Ec2Instance& instance) {
  driver::cloud::Instance described;
  described.external_id = ExternalId({instance.id, instance.host});
  auto name = instance.tags.find("Name");
  described.name = name == instance.tags.end() ? instance.id : name->second;
  described.metadata = instance.tags;
  described.cloud = kCloudName;
  described.region = cloud.account.region;
  if (!instance.zone.empty()) described.az = instance.zone;
  driver::cloud::SetAddresses({instance.public_ipv4, instance.ipv6, instance.private_ipv4}, described);
  described.quota =
      instance.host.empty() ? cloud.types.NeedOf(instance.type, instance.is_spot) : NeedOfHost(instance.type);
  return described;
}

}  // namespace nodepool::drivers::aws
