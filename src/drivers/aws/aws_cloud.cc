#include "drivers/aws/aws_cloud.h"

#include "base/json_fields.h"
#include "driver/cloud/launch/instance.h"
#include "drivers/aws/credentials/account.h"

namespace nodepool::drivers::aws {

namespace {

constexpr Duration kRecent = std::chrono::minutes(5);
constexpr const char* kInstanceKey = "instance";
constexpr const char* kHostKey = "host";

}  // namespace

AwsCloud::AwsCloud(const driver::cloud::AdapterEnvironment& for_environment, const AwsConfig& provider,
                   const std::string& of_region, Ec2& client, TaskGroup& tasks, const log::Logger& logger)
    : environment(for_environment),
      config(provider),
      region(of_region),
      ec2(client),
      types(ec2, logger),
      images(environment.loop, ec2),
      templates(environment, config, ec2, tasks, logger),
      terminations(ec2, tasks),
      recent(environment.loop, kRecent),
      instances(tasks, environment.random, logger, "instances of provider " + config.name.str(),
                [this] { return ListInstancesOf(ec2, config.name.str()); }),
      hosts(tasks, environment.random, logger, "dedicated hosts of provider " + config.name.str(),
            [this] { return ListHostsOf(ec2, config.name.str()); }) {}

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
  described.region = cloud.region;
  if (!instance.zone.empty()) described.az = instance.zone;
  driver::cloud::SetAddresses({instance.public_ipv4, instance.ipv6, instance.private_ipv4}, described);
  described.quota =
      instance.host.empty() ? cloud.types.NeedOf(instance.type, instance.is_spot) : NeedOfHost(instance.type);
  return described;
}

}  // namespace nodepool::drivers::aws
