#include "drivers/aws/compute/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/api/xml.h"
#include "drivers/aws/compute/instance_request.h"
#include "drivers/aws/compute/launch_templates.h"

namespace nodepool::drivers::aws {

using driver::cloud::CreateParameters;

namespace {

constexpr std::size_t kMaxFleetMessage = 600;

void AddOverride(const Candidate& candidate, const MachineImage& image, const std::string& name,
                 Query& query) {
  query.Add(name + "ImageId", image.id).Add(name + "InstanceType", candidate.type);
  if (candidate.place.subnet_id) {
    query.Add(name + "SubnetId", *candidate.place.subnet_id);
  } else if (candidate.place.zone) {
    query.Add(name + "AvailabilityZone", *candidate.place.zone);
  }
}

}  // namespace

Query CreateFleet(const CreateParameters& parameters, const MachineImage& image,
                  const std::string& template_name, const std::map<std::string, std::string>& tags,
                  const std::string& token) {
  const AwsLabel& label = LabelOf(parameters);
  const std::string& strategy = *label.fleet_strategy;
  Query query("CreateFleet");
  query.Add("Type", "instant").Add("ClientToken", token);
  const std::string config = "LaunchTemplateConfigs.1.";
  query.Add(config + "LaunchTemplateSpecification.LaunchTemplateName", template_name);
  query.Add(config + "LaunchTemplateSpecification.Version", "$Latest");
  int number = 0;
  for (const Candidate& candidate : CandidatesOf(label, PoolOf(parameters))) {
    const std::string name = fmt::format("{}Overrides.{}.", config, ++number);
    AddOverride(candidate, image, name, query);
    // Without it AWS may take any of them first.
    if (strategy == "prioritized") query.Add(name + "Priority", number);
    // The template names the usual root device.
    const BlockDevice* root = image.Root();
    if (root != nullptr && root->name != kTemplateDevice) AddRootVolume(*root, label.volume, name, query);
  }
  query.Add("TargetCapacitySpecification.TotalTargetCapacity", 1);
  query.Add("TargetCapacitySpecification.DefaultTargetCapacityType", label.use_spot ? "spot" : "on-demand");
  query.Add(label.use_spot ? "SpotOptions.AllocationStrategy" : "OnDemandOptions.AllocationStrategy",
            strategy);
  AddTagSpecifications({"instance", "volume"}, tags, query);
  return query;
}

FleetAnswer ReadFleet(const pugi::xml_node& root) {
  FleetAnswer answer;
  for (const pugi::xml_node& item : Items(root, "fleetInstanceSet")) {
    if (answer.instance.empty()) answer.instance = TextAt(item, {"instanceIds", "item"});
  }
  for (const pugi::xml_node& item : Items(root, "errorSet")) {
    answer.errors.push_back({TextAt(item, {"errorCode"}), TextAt(item, {"errorMessage"})});
  }
  return answer;
}

void ThrowFleetErrors(const std::vector<FleetError>& errors) {
  std::set<std::string> texts;  // candidates often fail alike
  for (const FleetError& error : errors) texts.insert(error.code + ": " + error.message);
  std::string message = "AWS made no instance of the fleet";
  for (const std::string& text : texts) message += "; " + text;
  message = Excerpt(message, kMaxFleetMessage);
  auto mean = [&errors](bool (*kind)(std::string_view)) {
    return std::ranges::count_if(errors, kind, &FleetError::code);
  };
  const auto all = std::ssize(errors);
  if (mean(&MeansQuota) > 0) throw Error(Verdict::kQuota, message);
  if (mean(&MeansBadSettings) == all && all > 0) throw Error(Verdict::kInvalid, message);
  if (mean(&MeansNoCapacity) + mean(&MeansBadSettings) == all && all > 0) {
    throw driver::cloud::LaunchError(driver::cloud::LaunchError::Kind::kCapacity, message);
  }
  throw Error(Verdict::kFail, message);
}

}  // namespace nodepool::drivers::aws
