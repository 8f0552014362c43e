#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "driver/provider_environment.h"
#include "drivers/aws/api/ec2.h"
#include "drivers/aws/compute/launch_template.h"

namespace nodepool::drivers::aws {

// The launch templates of one provider's fleets (driver-aws.md 9.1).
class LaunchTemplates {
 public:
  // The work belongs to `tasks`; everything outlives it.
  LaunchTemplates(const driver::ProviderEnvironment& environment, const AwsConfig& config, Ec2& ec2,
                  TaskGroup& tasks, log::Logger logger);

  // Begins to make those that labels need and AWS lacks, and then removes those of this provider that none
  // needs. Tried until it succeeds; then ProviderEnvironment::capacity_changed is called. Further calls do
  // nothing.
  void Start();

  // Whether all exist; also true if Start() was never called, as by a command that makes no nodes.
  bool are_ready() const { return !is_started_ || ready_.is_set(); }
  // Ends when all exist.
  Task<> WaitReady();
  // AWS says that one does not exist: they are made again, and none is removed, as another launcher with
  // another configuration may need it.
  void MakeAgain();

 private:
  Task<> Run(bool removes);
  Task<> Make(bool removes);

  const driver::ProviderEnvironment& environment_;
  const AwsConfig& config_;
  Ec2& ec2_;
  TaskGroup& tasks_;
  log::Logger logger_;
  bool is_started_ = false;
  Event ready_{"the launch templates"};
};

// A template as EC2 lists it.
struct ListedTemplate {
  std::string name;
  std::string provider;  // of its tag; empty: none
};
std::vector<ListedTemplate> ReadTemplates(const pugi::xml_node& root);

}  // namespace nodepool::drivers::aws
