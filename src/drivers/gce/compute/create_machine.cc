#include <fmt/format.h>

#include "async/attempt.h"
#include "driver/cloud/launch/start_following.h"
#include "driver/refusal.h"
#include "drivers/gce/api/faults.h"
#include "drivers/gce/compute/instance_request.h"
#include "drivers/gce/compute/quota.h"

namespace nodepool::drivers::gce {

using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;
using driver::cloud::StartFollowing;
using driver::cloud::StartSteps;

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
  co_await machine.SetExternalId(ExternalId(id, config_->zone));
  Operation operation = co_await SubmitInsert(launch, image.url);
  cloud_.fresh.Add(id.name, {operation.name, zone});
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

}  // namespace nodepool::drivers::gce
