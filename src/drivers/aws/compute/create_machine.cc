#include <fmt/format.h>

#include <algorithm>

#include "async/attempt.h"
#include "driver/cloud/launch/start_following.h"
#include "driver/refusal.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/compute/instance_request.h"
#include "drivers/aws/compute/machines.h"
#include "drivers/aws/compute/quota.h"

namespace nodepool::drivers::aws {

using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;

namespace {

constexpr Duration kThrottledFleet = std::chrono::seconds(5);
constexpr int kTemplateRepeats = 2;

Task<std::string> FindImage(AwsCloud& cloud, const CreateParameters& parameters) {
  if (parameters.image_external_id) co_return *parameters.image_external_id;
  AwsCloudImage image = cloud.config.cloud_images.at(LabelOf(parameters).cloud_image.value_or(""));
  std::string id = co_await cloud.images.IdOf(std::move(image));
  co_return id;
}

[[noreturn]] void ThrowRefusal(AwsCloud& cloud, const CreateParameters& parameters, const Failure& failure) {
  const std::string code = CodeOf(failure);
  bool has_others = CandidatesOf(LabelOf(parameters), PoolOf(parameters)).size() > 1;
  bool leads_on = has_others && ConcernsOneCandidate(code);
  bool lacks_capacity = MeansNoCapacity(code) || (leads_on && MeansQuota(code));
  if (lacks_capacity) throw LaunchError(LaunchError::Kind::kCapacity, failure.message());
  if (leads_on) throw LaunchError(LaunchError::Kind::kCandidate, failure.message());
  // Of which type of a fleet it is said, is not known.
  const AwsLabel& label = LabelOf(parameters);
  std::string quota(label.fleet_strategy ? "" : QuotaOf(code, label, ChosenOf(parameters).type));
  if (!quota.empty()) {
    throw driver::Refusal::OfQuota(quota, NeedOf(cloud, label).resources(),
                                   fmt::format("quota {}: {}", quota, failure.message()));
  }
  if (MeansBadSettings(code)) throw Error(Verdict::kInvalid, failure.message());
  if (code.starts_with("InvalidAMIID")) {
    cloud.images.Clear();
    throw Error(Verdict::kFail, failure.message());
  }
  failure.Rethrow();
}

// Allocates a dedicated host for the node and waits until instances can run on it.
Task<std::string> PrepareHost(AwsCloud& cloud, MachineReport& machine, const CreateParameters& parameters) {
  machine.SetState("submit allocating host");
  std::string token = cloud.environment.random.UuidHex();
  Candidate chosen = ChosenOf(parameters);
  Task<std::string> call = AllocateHost(cloud.ec2, chosen.type, chosen.place.zone.value_or(""),
                                        InstanceTags(parameters, machine.logger()), std::move(token));
  Outcome<std::string> allocated = co_await Attempt(std::move(call));
  if (!allocated) ThrowRefusal(cloud, parameters, allocated.error());
  std::string id = std::move(*allocated);
  machine.logger().Info("Allocated host {} as host {}", parameters.hostname, id);
  boost::json::value external_id = ExternalId({"", id});
  co_await machine.SetExternalId(std::move(external_id));
  machine.SetState("allocating host");
  auto is_available = [&id](const Hosts& hosts) {
    auto found = hosts.find(id);
    if (found == hosts.end()) return false;
    const std::string& state = found->second.state;
    if (found->second.is_gone() || state == "permanent-failure") {
      throw LaunchError(LaunchError::Kind::kStatus, fmt::format("dedicated host {} is {}", id, state));
    }
    return state == "available";
  };
  co_await cloud.hosts.Until(is_available);
  co_return id;
}

Task<std::shared_ptr<const MachineImage>> DescribeImage(AwsCloud& cloud, const CreateParameters& parameters) {
  std::string id = co_await FindImage(cloud, parameters);
  std::shared_ptr<const MachineImage> image = co_await cloud.images.Describe(std::move(id));
  co_return image;
}

// The answer shows the instance as it is at that moment; of a repeated call that may be its end.
Task<Ec2Instance> SubmitInstance(AwsCloud& cloud, const CreateParameters& parameters,
                                 const log::Logger& logger, std::string host) {
  std::shared_ptr<const MachineImage> image = co_await DescribeImage(cloud, parameters);
  Query query = RunInstances(parameters, *image, InstanceTags(parameters, logger),
                             cloud.environment.random.UuidHex(), host);
  Task<std::vector<Ec2Instance>> call =
      cloud.ec2.Call<std::vector<Ec2Instance>>(std::move(query), &ReadReservation);
  Outcome<std::vector<Ec2Instance>> made = co_await Attempt(std::move(call));
  if (!made) ThrowRefusal(cloud, parameters, made.error());
  if (made->empty()) throw Error(Verdict::kRetry, "AWS accepted a launch and returned no instance");
  co_return std::move(made->front());
}

// Another launcher of the provider, with another configuration, may remove the template meanwhile.
Task<FleetAnswer> RequestFleet(Ec2& ec2, LaunchTemplates& templates, const Query& query) {
  for (int again = kTemplateRepeats;; --again) {
    co_await templates.WaitReady();
    Query copy = query;
    Task<FleetAnswer> call = ec2.Call<FleetAnswer>(std::move(copy), &ReadFleet);
    Outcome<FleetAnswer> made = co_await Attempt(std::move(call));
    if (made) co_return std::move(*made);
    bool lacks_template = CodeOf(made.error()).starts_with("InvalidLaunchTemplate");
    if (!lacks_template || again == 0) made.error().Rethrow();
    templates.MakeAgain();
  }
}

// Of the instance only the id is known.
Task<Ec2Instance> SubmitFleet(AwsCloud& cloud, const CreateParameters& parameters,
                              const log::Logger& logger) {
  std::shared_ptr<const MachineImage> image = co_await DescribeImage(cloud, parameters);
  LaunchTemplate used = TemplateOf(LabelOf(parameters), PoolOf(parameters), cloud.config.name.str());
  const std::map<std::string, std::string> tags = InstanceTags(parameters, logger);
  while (true) {
    const Query query = CreateFleet(parameters, *image, used.name, tags, cloud.environment.random.UuidHex());
    Outcome<FleetAnswer> made = co_await Attempt(RequestFleet(cloud.ec2, cloud.templates, query));
    if (!made) ThrowRefusal(cloud, parameters, made.error());
    if (!made->instance.empty()) {
      Ec2Instance instance;
      instance.id = made->instance;
      co_return instance;
    }
    // EC2 may throttle what it does for a fleet itself; that costs no attempt either.
    bool is_throttled = std::ranges::any_of(made->errors, &MeansThrottled, &FleetError::code);
    if (!is_throttled) ThrowFleetErrors(made->errors);
    co_await cloud.environment.loop.SleepFor(kThrottledFleet);
  }
}

[[noreturn]] void ThrowEnd(const Ec2Instance& instance) {
  std::string message = fmt::format("instance {} is {}: {} {}", instance.id, instance.state,
                                    instance.reason_code, instance.reason);
  if (MeansQuota(instance.reason_code)) throw Error(Verdict::kQuota, message);
  bool lacks_capacity = MeansNoCapacity(instance.reason_code);
  throw LaunchError(lacks_capacity ? LaunchError::Kind::kCapacity : LaunchError::Kind::kStatus, message);
}

// Ends when the instance runs and has its addresses.
Task<Ec2Instance> WaitUsable(Loop& loop, driver::cloud::api::ListCache<Ec2Instances>& instances,
                             std::string id, bool wants_address) {
  driver::cloud::StartSteps<Ec2Instance> steps;
  steps.runs = [](const Ec2Instance& instance) {
    if (instance.is_lost()) ThrowEnd(instance);
    return instance.state == "running";
  };
  steps.has_address = [](const Ec2Instance& instance) { return !instance.public_ipv4.empty(); };
  steps.gone = [&id] {
    throw LaunchError(LaunchError::Kind::kStatus,
                      fmt::format("instance {} vanished while it was started", id));
  };
  driver::cloud::StartFollowing<Ec2Instance> following(loop, instances, id, wants_address, std::move(steps));
  Ec2Instance usable = co_await following.Await();
  co_return usable;
}

// Which of the label's types it is, what that costs and, of a fleet with several candidates, who chose it.
void AddChoice(const AwsConfig& config, const CreateParameters& parameters, const Ec2Instance& made,
               Instance& instance) {
  const AwsLabel& label = LabelOf(parameters);
  bool is_configured = std::ranges::find(label.instance_types, made.type) != label.instance_types.end();
  if (!is_configured) return;
  instance.machine_type = made.type + (label.use_spot ? " spot" : "");
  instance.hourly_price = PriceOf(config, label, made.type);
  if (!label.fleet_strategy || CandidatesOf(label, PoolOf(parameters)).size() < 2) return;
  instance.choice =
      fmt::format("{} in {}, chosen by AWS ({})", instance.machine_type, made.zone, *label.fleet_strategy);
}

}  // namespace

Task<Instance> CreateMachine(AwsCloud& cloud, MachineReport& machine, CreateParameters parameters) {
  const AwsLabel& label = LabelOf(parameters);
  // Known already, unless this is the first call of the adapter.
  std::set<std::string> types(label.instance_types.begin(), label.instance_types.end());
  co_await cloud.types.Learn(std::move(types));
  if (!label.fleet_strategy) NeedOf(cloud, label);
  std::string host;
  if (label.dedicated_host) host = co_await PrepareHost(cloud, machine, parameters);
  machine.SetState("submit creating instance");
  Task<Ec2Instance> submission = label.fleet_strategy
                                     ? SubmitFleet(cloud, parameters, machine.logger())
                                     : SubmitInstance(cloud, parameters, machine.logger(), host);
  Ec2Instance submitted = co_await std::move(submission);
  cloud.recent.Add(submitted.id);
  machine.logger().Info("Created VM {} as instance {}", parameters.hostname, submitted.id);
  boost::json::value external_id = ExternalId({submitted.id, host});
  co_await machine.SetExternalId(std::move(external_id));
  if (submitted.is_lost()) ThrowEnd(submitted);
  machine.SetState("creating instance");
  Task<Ec2Instance> wait =
      WaitUsable(cloud.environment.loop, cloud.instances, submitted.id, PoolOf(parameters).public_ipv4);
  Ec2Instance running = co_await std::move(wait);
  machine.SetState("complete");
  running.host = host;
  Instance instance = Describe(cloud, running);
  instance.quota = NeedOf(cloud.types, label, running.type);
  AddChoice(cloud.config, parameters, running, instance);
  co_return instance;
}

}  // namespace nodepool::drivers::aws
