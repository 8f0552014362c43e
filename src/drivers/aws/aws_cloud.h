#pragma once

#include <boost/json/value.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "async/task_group.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/list_cache.h"
#include "driver/cloud/api/server_clock.h"
#include "driver/cloud/framework.h"
#include "driver/cloud/launch/recent_machines.h"
#include "driver/cloud/leaks/leak_search.h"
#include "drivers/aws/api/ebs.h"
#include "drivers/aws/api/ec2.h"
#include "drivers/aws/api/s3.h"
#include "drivers/aws/api/service_quotas.h"
#include "drivers/aws/api/signature.h"
#include "drivers/aws/compute/account_limits.h"
#include "drivers/aws/compute/host.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_types.h"
#include "drivers/aws/compute/launch_templates.h"
#include "drivers/aws/compute/terminations.h"
#include "drivers/aws/config/aws_config.h"
#include "drivers/aws/credentials/account.h"
#include "drivers/aws/credentials/credential_fetcher.h"
#include "drivers/aws/images/image_sweep.h"
#include "drivers/aws/storage/machine_images.h"

namespace nodepool::drivers::aws {

// The max. age of a list used for counting and cleaning.
constexpr Duration kListAge = std::chrono::seconds(5);

// What creations, deletions and lists of one provider share.
struct AwsCloud {
  // `http` is used only here.
  AwsCloud(driver::cloud::AdapterEnvironment for_environment, std::shared_ptr<const AwsConfig> provider,
           Account for_account, Variables variables, std::unique_ptr<net::HttpClient> client);

  driver::cloud::AdapterEnvironment environment;
  std::shared_ptr<const AwsConfig> config;
  Account account;
  log::Logger logger{"nodepool.AwsAdapter." + config->name.value};
  std::unique_ptr<net::HttpClient> http;
  ServerClock clock;
  CredentialFetcher fetcher;
  RequestSigner::CredentialSource credentials;
  RequestSigner ec2_signer;
  Ec2 ec2;
  RequestSigner quotas_signer;
  ServiceQuotas quotas;
  RequestSigner s3_signer;
  std::optional<S3> s3;  // the bucket of `object-storage`; none: it is not configured
  RequestSigner ebs_signer;
  Ebs ebs;
  ImageSweep sweep;
  TaskGroup tasks;
  InstanceTypes types;
  AccountLimits limits;
  MachineImages images;
  LaunchTemplates templates;
  Terminations terminations;
  driver::cloud::RecentMachines<> recent;  // EC2 may not know them everywhere yet (driver-aws.md 18)
  // Those with this provider's tag, read once for all waiting tasks (driver-aws.md 7).
  driver::cloud::api::ListCache<Ec2Instances> instances;
  driver::cloud::api::ListCache<Hosts> hosts;
  driver::cloud::RareSweeps rare_sweeps;
  std::set<std::string> odd_types;  // of foreign instances, already logged

  Loop& loop() { return environment.loop; }
};

// What a node's external id names; members are empty where there is none.
struct MachineId {
  std::string instance;
  std::string host;  // the dedicated host
};
// {"instance": "i-...", "host": "h-..."}, without what is empty.
boost::json::value ExternalId(const MachineId& id);
// Old records hold the instance's id as plain text.
MachineId ReadExternalId(const boost::json::value& external_id);

// What the framework knows of an instance.
driver::cloud::Instance Describe(const AwsCloud& cloud, const Ec2Instance& instance);

}  // namespace nodepool::drivers::aws
