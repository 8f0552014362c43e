#include <fmt/format.h>

#include "async/attempt.h"
#include "driver/cloud/launch/machine_start.h"
#include "driver/refusal.h"
#include "drivers/gce/api/faults.h"
#include "drivers/gce/compute/instance_request.h"
#include "drivers/gce/compute/machines.h"
#include "drivers/gce/compute/quota.h"

namespace nodepool::drivers::gce {

using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;

namespace {

// Between questions after the operation of an instance that lists do not show.
constexpr Duration kAskAgain = std::chrono::seconds(3);

Task<ImageSource> FindImage(GceCloud& cloud, const CreateParameters& parameters) {
  if (parameters.image_external_id) {
    co_return ImageSource{
        fmt::format("projects/{}/global/images/{}", cloud.config->project, *parameters.image_external_id),
        ""};
  }
  GceCloudImage image = cloud.config->cloud_images.at(LabelOf(parameters).cloud_image.value_or(""));
  ImageSource source = co_await cloud.families.Find(std::move(image));
  co_return source;
}

// `code`: of a refusal, or of an operation that failed (driver-gce.md 17).
[[noreturn]] void ThrowRefusal(GceCloud& cloud, const CreateParameters& parameters, const std::string& code,
                               const std::string& message, Verdict otherwise) {
  if (MeansNoCapacity(code, message)) throw LaunchError(LaunchError::Kind::kCapacity, message);
  if (MeansQuota(code)) {
    throw driver::Refusal::OfQuota(ResourceOf(MetricIn(message)),
                                   NeedOf(cloud, LabelOf(parameters)).resources(), message);
  }
  if (MeansBadSettings(code)) {
    cloud.families.Doubt();
    throw Error(Verdict::kInvalid, message);
  }
  throw Error(otherwise, message);
}

void CheckType(const GceCloud& cloud, const CreateParameters& parameters, const Candidate& chosen,
               const ImageSource& image) {
  if (cloud.types.IsUnknown(chosen)) {
    throw LaunchError(LaunchError::Kind::kCandidate,
                      fmt::format("zone {} has no machine type {}", chosen.zone, chosen.type));
  }
  const TypeSize* size = cloud.types.Find(chosen);
  bool does_differ = size != nullptr && !size->architecture.empty() && !image.architecture.empty() &&
                     size->architecture != image.architecture;
  if (!does_differ) return;
  throw Error(Verdict::kInvalid,
              fmt::format("the image of label {} is for {}, and machine type {} is {}",
                          parameters.label->name, image.architecture, chosen.type, size->architecture));
}

// An instance of that name exists: that of this insert, whose answer was lost, or somebody else's.
Task<Operation> Adopt(GceCloud& cloud, const CreateParameters& parameters, std::string zone,
                      std::string refusal) {
  std::string name = parameters.hostname;
  std::optional<GceInstance> found = co_await FindInstance(cloud.compute, zone, name);
  if (found && IsOwn(cloud, *found, "", parameters.attempt_mark)) {
    Operation operation;
    operation.target_id = found->number;
    co_return operation;
  }
  throw Error(
      Verdict::kFail,
      fmt::format("{}; it is not of this launch and is left alone: another installation in project {} "
                  "may use the same names",
                  refusal, cloud.config->project));
}

Task<Operation> SubmitInsert(GceCloud& cloud, const CreateParameters& parameters, const Candidate& chosen,
                             const std::string& image) {
  ComputeCall call{"instances.insert", "zones/" + chosen.zone + "/instances"};
  boost::json::object body = InstanceRequest(parameters, *cloud.config, image);
  Outcome<Operation> made = co_await Attempt(cloud.compute.Insert(std::move(call), body));
  if (made) co_return std::move(*made);
  const std::string message = made.error().message();
  const std::string code = CodeOf(made.error());
  if (code == "alreadyExists") {
    Operation operation = co_await Adopt(cloud, parameters, chosen.zone, message);
    co_return operation;
  }
  if (code.empty() || made.error().verdict() == Verdict::kRetry) made.error().Rethrow();
  ThrowRefusal(cloud, parameters, code, message, made.error().verdict());
}

// Follows an instance from the insert to its use, by the zone's list, which all launches share.
class Following {
 public:
  Following(GceCloud& cloud, const CreateParameters& parameters, std::string zone, Operation operation)
      : cloud_(cloud),
        parameters_(parameters),
        zone_(std::move(zone)),
        operation_(std::move(operation)),
        start_(cloud.loop(), PoolOf(parameters).public_ipv4),
        asked_(start_.accepted()) {}

  Task<GceInstance> WaitUsable() {
    SteadyTime since = start_.accepted();
    while (true) {
      auto listing = co_await cloud_.ListsOf(zone_).labelled.After(since);
      since = listing.begun;
      auto found = listing.items->find(parameters_.hostname);
      bool is_it =
          found != listing.items->end() && IsOwn(cloud_, found->second, "", parameters_.attempt_mark);
      if (is_it && IsUsable(found->second)) co_return found->second;
      if (!is_it) co_await Ask(listing.begun);
    }
  }

 private:
  bool IsUsable(const GceInstance& instance) {
    cloud_.fresh.Remove(instance.name);
    if (instance.is_lost()) ThrowEnd(fmt::format("instance {} is {}", instance.name, instance.status));
    return start_.IsUsable(instance.status == "RUNNING", !instance.public_ipv4.empty());
  }

  // What is taken away before it runs is spare capacity that has gone.
  [[noreturn]] void ThrowEnd(const std::string& message) const {
    bool is_spot = LabelOf(parameters_).use_spot;
    throw LaunchError(is_spot ? LaunchError::Kind::kCapacity : LaunchError::Kind::kStatus, message);
  }

  // The list does not show it: its operation says whether that is final.
  Task<> Ask(SteadyTime begun) {
    SteadyTime now = cloud_.loop().SteadyNow();
    bool is_due = start_.has_been_listed() || now - asked_ >= kAskAgain;
    if (is_due && !operation_.name.empty()) {
      asked_ = now;
      co_await ReadAgain();
    }
    if (!start_.IsGone(begun)) co_return;
    cloud_.fresh.Remove(parameters_.hostname);
    if (operation_.is_done || operation_.name.empty() || start_.IsConsistent(begun))
      ThrowEnd(fmt::format("instance {} vanished while it was started", parameters_.hostname));
  }

  Task<> ReadAgain() {
    Outcome<Operation> read = co_await Attempt(cloud_.compute.ReadAgain("zones/" + zone_, operation_.name));
    if (!read) co_return;  // the list decides
    operation_ = std::move(*read);
    if (!operation_.has_failed()) co_return;
    cloud_.fresh.Remove(parameters_.hostname);
    ThrowRefusal(cloud_, parameters_, operation_.code, operation_.message, Verdict::kFail);
  }

  GceCloud& cloud_;
  const CreateParameters& parameters_;
  std::string zone_;
  Operation operation_;
  driver::cloud::MachineStart start_;
  SteadyTime asked_;
};

}  // namespace

Task<Instance> CreateMachine(GceCloud& cloud, MachineReport& machine, CreateParameters parameters) {
  const Candidate chosen = ChosenOf(parameters, *cloud.config);
  if (!IsResourceName(parameters.hostname))
    throw Error(Verdict::kInvalid, "Google permits no instance of the name " + parameters.hostname);
  co_await cloud.types.Learn(chosen);
  ImageSource image = co_await FindImage(cloud, parameters);
  CheckType(cloud, parameters, chosen, image);
  machine.SetState("submit creating instance");
  const std::string& usual = cloud.config->zone;
  MachineId id{parameters.hostname, chosen.zone, parameters.attempt_mark};
  co_await machine.SetExternalId(ExternalId(id, usual));
  Operation operation = co_await SubmitInsert(cloud, parameters, chosen, image.url);
  cloud.fresh.Add(id.name, {operation.name, chosen.zone});
  id.attempt.clear();
  co_await machine.SetExternalId(ExternalId(id, usual));
  machine.logger().Info("Creating instance {} ({}) in {}", id.name, chosen.type, chosen.zone);
  machine.SetState("creating instance");
  Following following(cloud, parameters, chosen.zone, std::move(operation));
  GceInstance running = co_await following.WaitUsable();
  cloud.last_change = cloud.loop().SteadyNow();
  machine.SetState("complete");
  Instance instance = Describe(cloud, running);
  instance.machine_type = chosen.type + (LabelOf(parameters).use_spot ? " spot" : "");
  co_return instance;
}

}  // namespace nodepool::drivers::gce
