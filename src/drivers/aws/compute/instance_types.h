#pragma once

#include <set>
#include <string>
#include <vector>

#include "driver/cloud/quota/machine_sizes.h"
#include "driver/quota_information.h"
#include "drivers/aws/api/ec2.h"

namespace nodepool::drivers::aws {

// The size of a kind of machine.
struct TypeSize {
  std::string name;
  double cores = 0;  // usually half of the virtual CPUs
  double vcpus = 0;
  double ram = 0;  // MiB
};

std::vector<TypeSize> ReadTypes(const pugi::xml_node& root);

// One instance on a host of its own: nothing but the host counts.
driver::QuotaInformation NeedOfHost(const std::string& type);

// What is known of EC2's kinds of machines, by name.
class InstanceTypes : public driver::cloud::MachineSizes<std::string, TypeSize> {
 public:
  // EC2's client outlives it.
  InstanceTypes(Ec2& ec2, log::Logger logger) : ec2_(ec2), logger_(std::move(logger)) {}

  // Asks for those that are not known yet, up to 100 at a time.
  Task<> Learn(std::set<std::string> names);
  // Logs once of each that EC2 does not know, of an instance that exists.
  void WarnOfUnknown(const std::set<std::string>& names);
  // One instance with its size, also under the code of its quota; of an unknown type, one instance.
  driver::QuotaInformation NeedOf(const std::string& name, bool is_spot) const;

 private:
  Task<> Ask(std::vector<std::string> names);

  Ec2& ec2_;
  log::Logger logger_;
  std::set<std::string> warned_of_;
};

}  // namespace nodepool::drivers::aws
