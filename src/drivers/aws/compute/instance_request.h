#pragma once

#include <boost/json/object.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/launch/candidates.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/api/services.h"
#include "drivers/aws/compute/disks.h"
#include "drivers/aws/config/aws_config.h"

namespace nodepool::drivers::aws {

using Candidate = driver::cloud::Candidate<AwsPlace>;

// What a label's node may be in a pool, the preferred one first: each place for the first type, then for the
// next. Empty: the label has no type.
std::vector<Candidate> CandidatesOf(const AwsLabel& label, const AwsPool& pool);

// The same for Adapter::Candidates; empty where there is no choice, and for fleets, in which AWS chooses.
std::vector<std::string> CandidateNames(const AwsLabel& label, const AwsPool& pool);

const AwsLabel& LabelOf(const driver::cloud::CreateParameters& parameters);
const AwsPool& PoolOf(const driver::cloud::CreateParameters& parameters);

// What is created: the candidate of the parameters.
Candidate ChosenOf(const driver::cloud::CreateParameters& parameters);

// The tags of instance and volumes (driver-aws.md 8.2). A template that cannot be filled is logged and left
// out.
std::map<std::string, std::string> InstanceTags(const driver::cloud::CreateParameters& parameters,
                                                const log::Logger& logger);

// The call that makes the instance (driver-aws.md 8.3). EC2 makes one instance for a token, however often it
// gets the call. `host`: the dedicated host on which it runs; empty: AWS chooses.
Query RunInstances(const driver::cloud::CreateParameters& parameters, const MachineImage& image,
                   const std::map<std::string, std::string>& tags, const std::string& token,
                   const std::string& host);

// The image's root volume with what the label wants of it, as parameters that begin with `prefix`. What AWS
// refuses for the volume's type is left out.
void AddRootVolume(const BlockDevice& device, const RootVolume& wanted, const std::string& prefix,
                   Query& query);

// The tags of what a call makes: the same for each kind of resource, such as "instance" and "volume".
void AddTagSpecifications(const std::vector<std::string>& resources,
                          const std::map<std::string, std::string>& tags, Query& query);

// The call that makes one instance of the types of the label's fleet, of which AWS chooses one, in the places
// of its pool (driver-aws.md 9.2). Sent again with the same token it makes no second one.
Query CreateFleet(const driver::cloud::CreateParameters& parameters, const MachineImage& image,
                  const std::string& template_name, const std::map<std::string, std::string>& tags,
                  const std::string& token);

// Why AWS made no instance of a candidate.
struct FleetError {
  std::string code;
  std::string message;
};

struct FleetAnswer {
  std::string instance;            // its id; empty: none was made
  std::vector<FleetError> errors;  // of the candidates; may be there beside an instance
};
FleetAnswer ReadFleet(const pugi::xml_node& root);

// Throws what the errors of a fleet without an instance mean: kQuota if one is about a limit; a LaunchError
// for lack of capacity if all are; kInvalid if no candidate can ever be made; else kFail.
[[noreturn]] void ThrowFleetErrors(const std::vector<FleetError>& errors);

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
