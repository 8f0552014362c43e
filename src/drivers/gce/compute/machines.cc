#include "drivers/gce/compute/machines.h"

#include <fmt/format.h>

#include <map>

#include "async/backoff.h"
#include "async/task.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/url_text.h"
#include "driver/cloud/launch/machine_start.h"
#include "driver/cloud/leaks/leak_search.h"
#include "driver/cloud/metadata.h"
#include "driver/driver.h"
#include "drivers/gce/api/services.h"
#include "drivers/gce/compute/quota.h"
#include "drivers/gce/gce_driver.h"

namespace nodepool::drivers::gce {

namespace json = boost::json;
using driver::cloud::AnnouncedEnd;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;
using driver::cloud::Resource;
using driver::cloud::StartFollowing;
using driver::cloud::StartSteps;
using driver::cloud::api::LastSegment;

namespace {

json::object BootDisk(const Launch& launch, const std::string& image) {
  const GceLabel& label = launch.label;
  json::object parameters{
      {"sourceImage", image},
      {"diskType", fmt::format("zones/{}/diskTypes/{}", launch.zone(), label.volume_type)},
      {"diskSizeGb", std::to_string(label.volume_size)}};
  return {{"boot", true}, {"autoDelete", true}, {"initializeParams", std::move(parameters)}};
}

json::object NetworkInterface(const GcePool& pool, const std::string& region) {
  json::object interface;
  if (pool.network || !pool.subnetwork)
    interface["network"] = "global/networks/" + pool.network.value_or("default");
  if (pool.subnetwork)
    interface["subnetwork"] = fmt::format("regions/{}/subnetworks/{}", region, *pool.subnetwork);
  if (pool.public_ipv4) {
    json::object access{{"type", "ONE_TO_ONE_NAT"}, {"name", "External NAT"}};
    interface["accessConfigs"] = json::array{std::move(access)};
  }
  if (pool.public_ipv6) {
    json::object access{{"type", "DIRECT_IPV6"}, {"networkTier", "PREMIUM"}};
    interface["stackType"] = "IPV4_IPV6";
    interface["ipv6AccessConfigs"] = json::array{std::move(access)};
  }
  return interface;
}

json::array Accounts(const GcePool& pool) {
  if (!pool.service_account) return {};
  json::array scopes(pool.service_account->scopes.begin(), pool.service_account->scopes.end());
  return {json::object{{"email", pool.service_account->email}, {"scopes", std::move(scopes)}}};
}

json::array MetadataItems(const Launch& launch) {
  json::array items;
  for (const auto& [key, value] : launch.marks) items.push_back(json::object{{"key", key}, {"value", value}});
  const GceCloudImage& image =
      FindOrEmpty(launch.cloud.config->cloud_images, launch.label.cloud_image.value_or(""));
  if (!image.key.empty()) {
    std::string line = image.connection.username.value_or("") + ":" + image.key;
    items.push_back(json::object{{"key", "ssh-keys"}, {"value", std::move(line)}});
  }
  return items;
}

json::object Labels(const Launch& launch) {
  json::object labels = ObjectOf(launch.label.labels);
  for (const auto& [key, value] : FittingLabels(launch.marks)) labels[key] = value;
  return labels;
}

// A stopped instance would keep its disk, its name and its quota.
json::object SpotScheduling(const GceLabel& label) {
  json::object scheduling{{"provisioningModel", "SPOT"},
                          {"instanceTerminationAction", "DELETE"},
                          {"onHostMaintenance", "TERMINATE"},
                          {"automaticRestart", false}};
  if (label.spot_notice > 0) {
    json::object notice{{"seconds", std::to_string(label.spot_notice)}};
    scheduling["preemptionNoticeDuration"] = std::move(notice);
  }
  return scheduling;
}

}  // namespace

Launch::Launch(GceCloud& in, const CreateParameters& wanted)
    : cloud(in),
      parameters(wanted),
      label(driver::cloud::As<GceLabel>(*wanted.label)),
      pool(driver::cloud::As<GcePool>(*wanted.pool)),
      marks(wanted.metadata),
      candidate(driver::cloud::ChosenOf(cloud.CandidatesOf(label), parameters)) {
  marks[driver::cloud::kAttemptKey] = parameters.attempt_mark;
  if (parameters.az) candidate.place = *parameters.az;
}

json::object InstanceRequest(const Launch& launch, const std::string& image) {
  const GceLabel& label = launch.label;
  const GcePool& pool = launch.pool;
  json::object body;
  body["name"] = launch.name();
  body["machineType"] = fmt::format("zones/{}/machineTypes/{}", launch.zone(), launch.candidate.type);
  body["disks"] = json::array{BootDisk(launch, image)};
  body["networkInterfaces"] = json::array{NetworkInterface(pool, launch.cloud.config->region)};
  body["serviceAccounts"] = Accounts(pool);
  body["metadata"] = json::object{{"items", MetadataItems(launch)}};
  body["labels"] = Labels(launch);
  if (label.use_spot) body["scheduling"] = SpotScheduling(label);
  if (!pool.tags.empty())
    body["tags"] = json::object{{"items", json::array(pool.tags.begin(), pool.tags.end())}};
  return body;
}

namespace {

bool IsMadeBy(const Launch& launch, const GceInstance& instance) {
  return IsOwn(launch.cloud, instance, "", launch.parameters.attempt_mark);
}

Task<ImageSource> FindImage(const Launch& launch) {
  const GceConfig& config = *launch.cloud.config;
  if (const std::optional<std::string>& name = launch.parameters.image_external_id)
    co_return ImageSource{fmt::format("projects/{}/global/images/{}", config.project, *name), ""};
  GceCloudImage image = config.cloud_images.at(launch.label.cloud_image.value_or(""));
  ImageSource source = co_await launch.cloud.FindImage(std::move(image));
  co_return source;
}

// `code`: of a refusal, or of an operation that failed (driver-gce.md 17).
[[noreturn]] void ThrowRefusal(const Launch& launch, const std::string& code, const std::string& message,
                               Verdict otherwise) {
  switch (MeaningOf(code, message)) {
    case Meaning::kNoCapacity:
      throw LaunchError(LaunchError::Kind::kCapacity, message);
    case Meaning::kQuota:
      throw driver::Refusal::OfQuota(ResourceOf(MetricIn(message)),
                                     NeedOf(launch.cloud, launch.label).resources(), message);
    case Meaning::kBadSettings:
      launch.cloud.families.Doubt();
      throw Error(Verdict::kInvalid, message);
    default:
      throw Error(otherwise, message);
  }
}

void CheckType(const Launch& launch, const ImageSource& image) {
  const auto& [type, zone] = launch.candidate;
  if (launch.cloud.types.IsUnknown(launch.candidate)) {
    throw LaunchError(LaunchError::Kind::kCandidate,
                      fmt::format("zone {} has no machine type {}", zone, type));
  }
  const TypeSize* size = launch.cloud.types.Find(launch.candidate);
  bool does_differ = size != nullptr && !size->architecture.empty() && !image.architecture.empty() &&
                     size->architecture != image.architecture;
  if (!does_differ) return;
  throw Error(Verdict::kInvalid,
              fmt::format("the image of label {} is for {}, and machine type {} is {}", launch.label.name,
                          image.architecture, type, size->architecture));
}

// An instance of that name exists: that of this insert, whose answer was lost, or somebody else's.
Task<Operation> Adopt(const Launch& launch, std::string refusal) {
  std::optional<GceInstance> found =
      co_await FindInstance(launch.cloud.compute, launch.zone(), launch.name());
  if (found && IsMadeBy(launch, *found)) {
    Operation operation;
    operation.target_id = found->number;
    co_return operation;
  }
  throw Error(
      Verdict::kFail,
      fmt::format("{}; it is not of this launch and is left alone: another installation in project {} "
                  "may use the same names",
                  refusal, launch.cloud.config->project));
}

Task<Operation> SubmitInsert(const Launch& launch, const std::string& image) {
  ComputeCall call{"instances.insert", "zones/" + launch.zone() + "/instances"};
  Task<Operation> insert =
      launch.cloud.compute.Change("POST", std::move(call), InstanceRequest(launch, image));
  Outcome<Operation> made = co_await Attempt(std::move(insert));
  if (made) co_return std::move(*made);
  const std::string message = made.error().message();
  const std::string code = CodeOf(made.error());
  if (code == "alreadyExists") {
    Operation operation = co_await Adopt(launch, message);
    co_return operation;
  }
  if (code.empty() || made.error().verdict() == Verdict::kRetry) made.error().Rethrow();
  ThrowRefusal(launch, code, message, made.error().verdict());
}

// What is taken away before it runs is spare capacity that has gone.
[[noreturn]] void ThrowEnd(const Launch& launch, const std::string& message) {
  launch.cloud.fresh.Remove(launch.name());
  bool is_spot = launch.label.use_spot;
  throw LaunchError(is_spot ? LaunchError::Kind::kCapacity : LaunchError::Kind::kStatus, message);
}

// Whether the insert has ended; where its operation cannot be read the list decides.
Task<bool> HasEnded(const Launch& launch, std::string operation) {
  Task<Operation> reading = launch.cloud.compute.ReadAgain("zones/" + launch.zone(), std::move(operation));
  Outcome<Operation> read = co_await Attempt(std::move(reading));
  if (!read) co_return false;
  if (!read->has_failed()) co_return read->is_done;
  launch.cloud.fresh.Remove(launch.name());
  ThrowRefusal(launch, read->code, read->message, Verdict::kFail);
}

StartSteps<GceInstance> StepsOf(const Launch& launch, std::string operation) {
  StartSteps<GceInstance> steps;
  steps.is_it = [&launch](const GceInstance& instance) { return IsMadeBy(launch, instance); };
  steps.runs = [&launch](const GceInstance& instance) {
    launch.cloud.fresh.Remove(instance.name);
    if (instance.is_lost())
      ThrowEnd(launch, fmt::format("instance {} is {}", instance.name, instance.status));
    return instance.status == "RUNNING";
  };
  steps.has_address = [](const GceInstance& instance) { return !instance.public_ipv4.empty(); };
  steps.gone = [&launch] {
    ThrowEnd(launch, fmt::format("instance {} vanished while it was started", launch.name()));
  };
  if (operation.empty()) return steps;
  steps.ask = [&launch, operation = std::move(operation)] { return HasEnded(launch, operation); };
  return steps;
}

}  // namespace

Task<Instance> GceAdapter::Create(MachineReport& machine, CreateParameters parameters) {
  const Launch launch(cloud_, parameters);
  const auto& [type, zone] = launch.candidate;
  if (!kResourceRule.Permits(parameters.hostname))
    throw Error(Verdict::kInvalid, "Google permits no instance of the name " + parameters.hostname);
  co_await cloud_.types.Learn(launch.candidate);
  ImageSource image = co_await FindImage(launch);
  CheckType(launch, image);
  machine.SetState("submit creating instance");
  MachineId id{parameters.hostname, zone, parameters.attempt_mark};
  // Known before the call, and stored before it, so that a crash leaves nothing unknown (driver-gce.md 7.2).
  co_await machine.SetExternalId(ExternalId(id, config_->zone));
  Operation operation = co_await SubmitInsert(launch, image.url);
  cloud_.fresh.Add(id.name, {operation.name, zone});
  // Until here the name may have been that of another installation's instance (driver-gce.md 1).
  id.attempt.clear();
  co_await machine.SetExternalId(ExternalId(id, config_->zone));
  machine.logger().Info("Creating instance {} ({}) in {}", id.name, type, zone);
  machine.SetState("creating instance");
  StartFollowing<GceInstance> following(cloud_.loop(), cloud_.labelled.Of(zone), id.name,
                                        launch.pool.public_ipv4, StepsOf(launch, operation.name));
  GceInstance running = co_await following.Await();
  cloud_.all.NoteChange();
  machine.SetState("complete");
  Instance instance = Describe(cloud_, running);
  instance.machine_type = type + (launch.label.use_spot ? " spot" : "");
  co_return instance;
}

namespace {

constexpr Duration kUnknownPause = std::chrono::seconds(1);
constexpr Duration kListedLimit = std::chrono::seconds(60);
constexpr Backoff::Settings kBusyPauses{std::chrono::seconds(1), std::chrono::seconds(15)};

// The node's id in the name of its machine.
std::string NodeIn(const std::string& name) { return name.starts_with("np") ? name.substr(2) : name; }

// Whether an instance that Google does not know may still appear: its insert was accepted a moment ago.
Task<bool> MayAppear(GceCloud& cloud, const MachineId& id) {
  std::optional<NewInstance> made = cloud.fresh.Find(id.name);
  if (!made || made->zone != id.zone) co_return false;
  if (made->operation.empty()) co_return true;
  Outcome<Operation> insert = co_await Attempt(cloud.compute.ReadAgain("zones/" + id.zone, made->operation));
  co_return !insert || !insert->has_failed();
}

// False: another change of the instance is in progress. By its number, which no other instance has.
Task<bool> SubmitDelete(GceCloud& cloud, const GceInstance& instance) {
  const std::string& name = instance.number.empty() ? instance.name : instance.number;
  ComputeCall call{"instances.delete", InstancePath(instance.zone, name)};
  Outcome<Operation> deleted = co_await Attempt(cloud.compute.Change("DELETE", std::move(call)));
  if (deleted || FailedWith(deleted, Verdict::kNotFound)) co_return true;
  if (MeaningOf(CodeOf(deleted.error())) == Meaning::kNotReady) co_return false;
  deleted.error().Rethrow();
}

// False: it is still listed after a while.
Task<bool> AwaitGone(GceCloud& cloud, const GceInstance& instance) {
  InstanceLists& lists = instance.has_provider_label ? cloud.labelled : cloud.all;
  auto is_it = [number = instance.number](const GceInstance& listed) { return listed.number == number; };
  return lists.AwaitGone({instance.zone, instance.name}, std::move(is_it), kListedLimit);
}

}  // namespace

Task<> GceAdapter::Delete(MachineReport& machine, boost::json::value external_id) {
  GceCloud& cloud = cloud_;
  const MachineId id = ReadExternalId(external_id, config_->zone);
  if (id.name.empty()) co_return;
  machine.SetState("deleting instance");
  Backoff pauses(kBusyPauses, cloud.environment.random);
  while (true) {
    std::optional<GceInstance> found = co_await FindInstance(cloud.compute, id.zone, id.name);
    // Names are made of node ids, which another tree or installation may use as well (drivers.md 5.4).
    if (found && !IsOwn(cloud, *found, NodeIn(id.name), id.attempt)) {
      machine.logger().Info("Instance {} in {} is not this node's and is left alone", id.name, id.zone);
      break;
    }
    // One that was inserted a moment ago may not be shown yet.
    if (!found) {
      bool may_appear = co_await MayAppear(cloud, id);
      if (!may_appear) break;
      co_await cloud.loop().SleepFor(kUnknownPause);
      continue;
    }
    machine.logger().Info("Deleting instance {} in {}", id.name, id.zone);
    bool is_begun = co_await SubmitDelete(cloud, *found);
    bool is_gone = is_begun && co_await AwaitGone(cloud, *found);
    if (is_gone) break;
    Duration pause = pauses.Next();
    co_await cloud.loop().SleepFor(pause);
  }
  cloud.fresh.Remove(id.name);
  cloud.all.NoteChange();
  machine.SetState("complete");
}

// A leaked instance goes if it still has these marks; its end is not waited for.
Task<> GceAdapter::DeleteResource(driver::cloud::Resource resource) {
  if (resource.type != kInstanceKind) {
    co_await images_->DeleteMarked(std::move(resource));
    co_return;
  }
  std::size_t slash = resource.id.find('/');
  std::optional<GceInstance> found =
      co_await FindInstance(cloud_.compute, resource.id.substr(0, slash), resource.id.substr(slash + 1));
  if (!found || found->metadata != resource.metadata) co_return;
  bool is_begun = co_await SubmitDelete(cloud_, *found);
  if (!is_begun) throw Error(Verdict::kRetry, "another change of the instance is in progress");
}

namespace {

constexpr const char* kPreempted = "compute.instances.preempted";

// Google's announcements in a zone, by the instance's name; of several of one name the last.
using Preemptions = std::map<std::string, Operation>;

// None: they cannot be read.
Task<Preemptions> ReadPreemptions(GceCloud& cloud, std::string zone) {
  ComputeCall call{"zoneOperations.list", "zones/" + zone + "/operations"};
  std::string filter = std::string("operationType=\"") + kPreempted + "\"";
  Outcome<std::vector<Operation>> operations =
      co_await Attempt(cloud.compute.List<Operation>(std::move(call), filter, &ReadOperation));
  Preemptions preempted;
  if (!operations) co_return preempted;
  for (Operation& operation : *operations) {
    if (operation.type == kPreempted) preempted[LastSegment(operation.target)] = std::move(operation);
  }
  co_return preempted;
}

// Why the node's instance ends; empty: it does not.
std::string EndOf(const InstanceLists::Found& node, const Preemptions& preempted) {
  auto event = preempted.find(node.key.key);
  bool has_event = event != preempted.end();
  // One of another instance that had the name before says nothing.
  if (has_event && node.machine) has_event = event->second.target_id == node.machine->number;
  if (has_event) return "it was preempted (" + event->second.name + ")";
  return node.machine && node.machine->is_lost() ? "it is " + node.machine->status : "";
}

}  // namespace

Task<std::vector<Instance>> GceAdapter::ListInstances() {
  std::vector<InstanceLists::Pointer> listed = co_await cloud_.all.All();
  std::vector<Instance> machines;
  for (const InstanceLists::Pointer& instance : listed) machines.push_back(Describe(cloud_, *instance));
  co_return machines;
}

Task<std::vector<Resource>> GceAdapter::ListResources() {
  std::vector<Resource> resources;
  co_await cloud_.all.AppendOwn(kInstanceKind, resources);
  // The builder may have uploaded before.
  bool is_due = cloud_.rare_sweeps.Begin() ||
                driver::cloud::MayHaveImages(cloud_.environment.framework, *cloud_.config);
  if (is_due) co_await images_->AppendMarked(resources);
  co_return resources;
}

Task<std::vector<boost::json::value>> GceAdapter::MissingMachines(std::vector<boost::json::value> ids) {
  return cloud_.all.Missing(std::move(ids));
}

Task<std::vector<AnnouncedEnd>> GceAdapter::AnnouncedEnds(std::vector<boost::json::value> ids) {
  std::vector<InstanceLists::Found> nodes = co_await cloud_.all.Find(std::move(ids));
  std::map<std::string, Preemptions> preempted;  // by zone
  bool has_spot = driver::cloud::AnyLabel<GceLabel>(*cloud_.config, &GceLabel::use_spot);
  for (const InstanceLists::Found& node : nodes) {
    const std::string& zone = node.key.place;
    if (!has_spot || preempted.contains(zone)) continue;
    Preemptions read = co_await ReadPreemptions(cloud_, zone);
    preempted[zone] = std::move(read);
  }
  std::vector<AnnouncedEnd> ends;
  for (InstanceLists::Found& node : nodes) {
    std::string end = EndOf(node, preempted[node.key.place]);
    if (!end.empty()) ends.push_back({std::move(node.external_id), std::move(end)});
  }
  co_return ends;
}

}  // namespace nodepool::drivers::gce
