#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "driver/cloud/framework.h"
#include "drivers/aws/api/ec2.h"
#include "drivers/aws/api/query.h"
#include "drivers/aws/config/aws_config.h"

namespace nodepool::drivers::aws {

// Every launch template of Nodepool, of any provider, has a name that begins so.
inline constexpr const char* kTemplatePrefix = "nodepool-launch-template-";

// The root device of every template. The Python implementation names it so, whatever the image calls it.
inline constexpr const char* kTemplateDevice = "/dev/sda1";

// What the fleets of some labels have in common. Immutable: other data have another name (driver-aws.md 9.1).
struct LaunchTemplate {
  std::string name;
  boost::json::object data;  // LaunchTemplateData, as the API calls its members; null: not sent
};

LaunchTemplate TemplateOf(const AwsLabel& label, const AwsPool& pool, const std::string& provider);

// The call that makes it, with the tags by which it is found again.
Query CreateLaunchTemplate(const LaunchTemplate& wanted, const std::string& provider);

// Adds `value` and what is in it as parameters: lists lose the plural of their names and are numbered.
void AddStructure(const std::string& name, const boost::json::value& value, Query& query);

// The launch templates of one provider's fleets (driver-aws.md 9.1).
class LaunchTemplates {
 public:
  // The work belongs to `tasks`; everything outlives it.
  LaunchTemplates(const driver::cloud::AdapterEnvironment& environment, const AwsConfig& config, Ec2& ec2,
                  TaskGroup& tasks, log::Logger logger);

  // Begins to make those that labels need and AWS lacks, and then removes those of this provider that none
  // needs. Tried until it succeeds; then Framework::CapacityChanged is called. Further calls do
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

  const driver::cloud::AdapterEnvironment& environment_;
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
