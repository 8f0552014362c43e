#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/log/logging.h"
#include "driver/provider_config.h"
#include "drivers/aws/api/services.h"
#include "drivers/aws/compute/disks.h"
#include "drivers/aws/compute/machines.h"
#include "model/node.h"

namespace nodepool::drivers::aws {

// The limits of an account by quota code, read at most every five minutes (driver-aws.md 13.1, 13.4).
class AccountLimits {
 public:
  // Everything outlives it.
  AccountLimits(Loop& loop, ServiceQuotas& quotas, log::Logger logger)
      : loop_(loop), quotas_(quotas), logger_(std::move(logger)) {}

  // The limits of these codes: of virtual CPUs and dedicated hosts, and of volumes in GB and operations per
  // second. What cannot be read keeps its last value, or is unlimited and left out; each cause is logged
  // once.
  Task<Resources> Read(std::set<std::string> instances, std::set<std::string> storage,
                       std::set<std::string> iops);

 private:
  struct Known {
    std::map<std::string, double> limits;
    SteadyTime read{};
    std::string fault;  // of the last try; empty: none
  };

  Task<> Refresh(std::string service);
  void Add(const std::string& service, const std::set<std::string>& codes, double factor, Resources& limits);

  Loop& loop_;
  ServiceQuotas& quotas_;
  log::Logger logger_;
  std::map<std::string, Known> known_;  // by service
  std::set<std::string> unknown_;       // codes, already logged
};

// What one node of the label uses at least: an instance, and its root volume as far as the label says what it
// is (driver-aws.md 13.3). Of several types a resource counts if all use it, as much as the smallest does: a
// node that needs more than that is refused by AWS. Error(kInvalid): no node can be made; Error(kRetry): the
// sizes of the types are not known yet, or the launch templates not made.
driver::QuotaInformation NeedOf(const AwsCloud& cloud, const AwsLabel& label);

// What a node of the label uses that is of one of its types.
driver::QuotaInformation NeedOf(const InstanceTypes& types, const AwsLabel& label, const std::string& type);

// The account's limits of what the provider's labels use; everything else is unlimited. Also learns the sizes
// of the labels' instance types.
Task<driver::QuotaInformation> ReadLimits(const AwsConfig& config, InstanceTypes& types,
                                          AccountLimits& account);

// The code of the quota that is used up when AWS refuses a node of the label, of this type, with `refusal`: a
// resource of what the node needs. Empty: it is not known which, as of addresses.
std::string_view QuotaOf(std::string_view refusal, const AwsLabel& label, std::string_view type);

// Whether the kinds of volumes that labels name have limits.
bool CountsVolumes(const AwsConfig& config);
// What a volume uses.
driver::QuotaInformation UseOf(const Volume& volume);

}  // namespace nodepool::drivers::aws
