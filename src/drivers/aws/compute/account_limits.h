#pragma once

#include <map>
#include <set>
#include <string>

#include "base/log/logging.h"
#include "drivers/aws/api/service_quotas.h"
#include "model/resources.h"

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

}  // namespace nodepool::drivers::aws
