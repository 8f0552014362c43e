#include "drivers/aws/compute/machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "async/task.h"
#include "base/json_fields.h"
#include "driver/cloud/launch/machine_start.h"
#include "driver/driver.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/compute/disks.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/compute/instance_request.h"
#include "drivers/aws/compute/quota.h"
#include "drivers/aws/credentials/account.h"

namespace nodepool::drivers::aws {

using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;
using driver::cloud::Resource;

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

namespace {

constexpr Duration kAgain = std::chrono::seconds(5);

// False: there is no such instance. EC2 may deny one that was just made.
Task<bool> Terminate(AwsCloud& cloud, std::string id) {
  while (true) {
    bool is_known = co_await cloud.terminations.Terminate(id);
    if (is_known || !cloud.recent.Find(id)) co_return is_known;
    co_await cloud.environment.loop.SleepFor(kAgain);
  }
}

Task<> DeleteInstance(AwsCloud& cloud, driver::cloud::MachineReport& machine, std::string id) {
  machine.SetState("deleting instance");
  machine.logger().Info("Deleting instance {}", id);
  bool was_there = co_await Terminate(cloud, id);
  if (!was_there) co_return;
  auto is_gone = [&id](const Ec2Instances& list) {
    auto found = list.find(id);
    return found == list.end() || found->second.is_gone();
  };
  co_await cloud.instances.Until(is_gone);
}

// Ends what runs on the node's host: a launch that was stopped may have made an instance that no record
// names, and the host cannot be released before it is gone.
Task<> EmptyHost(AwsCloud& cloud, driver::cloud::MachineReport& machine, std::string host) {
  auto listing = co_await cloud.instances.Fresh();
  for (const auto& [id, instance] : *listing.items) {
    if (instance.host != host || instance.is_gone()) continue;
    std::string instance_id = id;
    co_await DeleteInstance(cloud, machine, std::move(instance_id));
  }
}

Task<> GiveBackHost(AwsCloud& cloud, driver::cloud::MachineReport& machine, std::string id) {
  co_await EmptyHost(cloud, machine, id);
  machine.SetState("releasing host");
  machine.logger().Info("Releasing dedicated host {}", id);
  co_await ReleaseHost(cloud.ec2, id);
  auto is_gone = [&id](const Hosts& list) {
    auto found = list.find(id);
    return found == list.end() || found->second.is_gone();
  };
  co_await cloud.hosts.Until(is_gone);
}

}  // namespace

Task<> DeleteMachine(AwsCloud& cloud, driver::cloud::MachineReport& machine, MachineId id) {
  if (!id.instance.empty()) co_await DeleteInstance(cloud, machine, id.instance);
  if (!id.host.empty()) co_await GiveBackHost(cloud, machine, id.host);
  machine.SetState("complete");
}

namespace {

constexpr const char* kInstance = "instance";
constexpr const char* kVolume = "volume";
constexpr const char* kHost = "host";

std::string EndOf(const Ec2Instance& instance) {
  std::string text = "it is " + instance.state;
  return instance.reason_code.empty() ? text : text + ", " + instance.reason_code;
}

// What volumes use, by the instance that they are attached to; empty if no label's volumes have limits.
Task<std::map<std::string, driver::QuotaInformation>> UseOfVolumes(Ec2& ec2, const AwsConfig& config) {
  std::map<std::string, driver::QuotaInformation> used;
  if (!CountsVolumes(config)) co_return used;
  std::vector<Volume> volumes = co_await ListAllVolumes(ec2);
  for (const Volume& volume : volumes) {
    if (!volume.instance.empty()) used[volume.instance].Add(UseOf(volume));
  }
  co_return used;
}

}  // namespace

Task<std::vector<Instance>> ListMachines(AwsCloud& cloud) {
  Ec2Instances instances = co_await ListAllInstances(cloud.ec2);
  std::set<std::string> types;
  for (const auto& [id, instance] : instances) types.insert(instance.type);
  co_await cloud.types.Learn(types);
  cloud.types.WarnOfUnknown(types);
  std::map<std::string, driver::QuotaInformation> volumes = co_await UseOfVolumes(cloud.ec2, cloud.config);
  std::vector<Instance> machines;
  for (const auto& [id, instance] : instances) {
    if (instance.is_gone()) continue;
    machines.push_back(Describe(cloud, instance));
    if (auto found = volumes.find(id); found != volumes.end()) machines.back().quota.Add(found->second);
  }
  co_return machines;
}

Task<std::vector<Resource>> MarkedInstances(driver::cloud::api::ListCache<Ec2Instances>& instances) {
  auto listing = co_await instances.NotOlderThan(kListAge);
  std::vector<Resource> resources;
  for (const auto& [id, instance] : *listing.items) {
    bool is_going = instance.is_gone() || instance.state == "shutting-down";
    if (!is_going) resources.push_back({kInstance, id, instance.tags});
  }
  co_return resources;
}

Task<std::vector<Resource>> MarkedVolumes(Ec2& ec2, std::string provider) {
  std::vector<Volume> volumes = co_await ListUnusedVolumes(ec2, std::move(provider));
  std::vector<Resource> resources;
  for (Volume& volume : volumes) {
    resources.push_back({kVolume, std::move(volume.id), std::move(volume.tags), true});
  }
  co_return resources;
}

Task<std::vector<Resource>> MarkedHosts(Ec2& ec2, std::string provider) {
  Hosts hosts = co_await ListHostsOf(ec2, std::move(provider));
  std::vector<Resource> resources;
  for (auto& [id, host] : hosts) {
    if (!host.is_gone()) resources.push_back({kHost, id, std::move(host.tags)});
  }
  co_return resources;
}

Task<> DeleteMarked(AwsCloud& cloud, Resource resource) {
  if (resource.type == kVolume) {
    co_await DeleteVolume(cloud.ec2, std::move(resource.id));
  } else if (resource.type == kHost) {
    // Its instance, which has leaked with it, may be on its way out.
    auto is_empty = [&resource](const Ec2Instances& list) {
      return std::ranges::none_of(list, [&resource](const auto& entry) {
        return entry.second.host == resource.id && !entry.second.is_gone();
      });
    };
    co_await cloud.instances.Until(is_empty);
    co_await ReleaseHost(cloud.ec2, resource.id);
  } else {
    co_await cloud.terminations.Terminate(std::move(resource.id));
  }
}

Task<std::vector<boost::json::value>> MissingInstances(driver::cloud::api::ListCache<Ec2Instances>& instances,
                                                       std::vector<boost::json::value> ids) {
  auto listing = co_await instances.NotOlderThan(kListAge);
  std::erase_if(ids, [&](const boost::json::value& id) {
    auto found = listing.items->find(ReadExternalId(id).instance);
    return found != listing.items->end() && !found->second.is_lost();
  });
  co_return ids;
}

Task<std::vector<driver::cloud::AnnouncedEnd>> EndingInstances(AwsCloud& cloud,
                                                               std::vector<boost::json::value> ids) {
  auto listing = co_await cloud.instances.NotOlderThan(kListAge);
  std::vector<driver::cloud::AnnouncedEnd> ends;
  std::map<std::string, boost::json::value> running;  // spot instances
  for (boost::json::value& id : ids) {
    std::string name = ReadExternalId(id).instance;
    auto found = listing.items->find(name);
    if (found == listing.items->end()) continue;
    const Ec2Instance& instance = found->second;
    if (instance.is_lost()) {
      ends.push_back({std::move(id), EndOf(instance)});
    } else if (instance.is_spot) {
      running.emplace(std::move(name), std::move(id));
    }
  }
  if (running.empty()) co_return ends;
  Outcome<std::vector<SpotRequest>> marked = co_await Attempt(ListMarkedSpotRequests(cloud.ec2));
  if (!marked && ends.empty()) marked.error().Rethrow();
  if (!marked) co_return ends;
  for (const SpotRequest& request : *marked) {
    auto node = running.extract(request.instance);
    if (node) ends.push_back({std::move(node.mapped()), request.status + ": " + request.message});
  }
  co_return ends;
}

}  // namespace nodepool::drivers::aws
