#include "drivers/aws/compute/create_machine.h"

#include <fmt/format.h>

#include <set>

#include "async/attempt.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/compute/instance_request.h"
#include "drivers/aws/compute/quota.h"

namespace nodepool::drivers::aws {

using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::LaunchError;
using driver::cloud::MachineReport;

namespace {

constexpr Duration kConsistent = std::chrono::seconds(60);
constexpr Duration kAddressLimit = std::chrono::seconds(30);

Task<std::string> FindImage(AwsCloud& cloud, const CreateParameters& parameters) {
  if (parameters.image_external_id) co_return *parameters.image_external_id;
  AwsCloudImage image = cloud.config->cloud_images.at(LabelOf(parameters).cloud_image.value_or(""));
  std::string id = co_await cloud.images.IdOf(std::move(image));
  co_return id;
}

[[noreturn]] void ThrowRefusal(AwsCloud& cloud, const Failure& failure) {
  const std::string code = CodeOf(failure);
  if (MeansNoCapacity(code)) throw LaunchError(LaunchError::Kind::kCapacity, failure.message());
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
  Task<std::string> call = AllocateHost(cloud.ec2, LabelOf(parameters).instance_type,
                                        PoolOf(parameters).availability_zone.value_or(""),
                                        InstanceTags(parameters, machine.logger()), std::move(token));
  Outcome<std::string> allocated = co_await Attempt(std::move(call));
  if (!allocated) ThrowRefusal(cloud, allocated.error());
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

// The answer shows the instance as it is at that moment; of a repeated call that may be its end.
Task<Ec2Instance> Submit(AwsCloud& cloud, const CreateParameters& parameters, const log::Logger& logger,
                         std::string host) {
  std::string image_id = co_await FindImage(cloud, parameters);
  std::shared_ptr<const MachineImage> image = co_await cloud.images.Describe(std::move(image_id));
  Query query = RunInstances(parameters, *image, InstanceTags(parameters, logger),
                             cloud.environment.random.UuidHex(), host);
  Task<std::vector<Ec2Instance>> call =
      cloud.ec2.Call<std::vector<Ec2Instance>>(std::move(query), &ReadReservation);
  Outcome<std::vector<Ec2Instance>> made = co_await Attempt(std::move(call));
  if (!made) ThrowRefusal(cloud, made.error());
  if (made->empty()) throw Error(Verdict::kRetry, "AWS accepted a launch and returned no instance");
  co_return std::move(made->front());
}

[[noreturn]] void ThrowEnd(const Ec2Instance& instance) {
  std::string message = fmt::format("instance {} is {}: {} {}", instance.id, instance.state,
                                    instance.reason_code, instance.reason);
  if (MeansQuota(instance.reason_code)) throw Error(Verdict::kQuota, message);
  bool lacks_capacity = MeansNoCapacity(instance.reason_code);
  throw LaunchError(lacks_capacity ? LaunchError::Kind::kCapacity : LaunchError::Kind::kStatus, message);
}

// Judges consecutive lists: whether the instance is usable.
class IsUsable {
 public:
  IsUsable(std::string id, bool wants_address, SteadyTime created)
      : id_(std::move(id)), wants_address_(wants_address), created_(created) {}

  // `begun`: when reading the list began; `now`: when it has ended. The result is in `instance()`.
  bool operator()(const Ec2Instances& list, SteadyTime begun, SteadyTime now) {
    auto found = list.find(id_);
    if (found == list.end()) {
      // A list may be older than the instance.
      if (instance_.id.empty() && begun - created_ < kConsistent) return false;
      throw LaunchError(LaunchError::Kind::kStatus,
                        fmt::format("instance {} vanished while it was started", id_));
    }
    instance_ = found->second;
    if (instance_.is_lost()) ThrowEnd(instance_);
    if (instance_.state != "running") return false;
    if (running_since_ == SteadyTime()) running_since_ = now;
    // It may get its public address a moment later.
    return !wants_address_ || !instance_.public_ipv4.empty() || now - running_since_ >= kAddressLimit;
  }

  const Ec2Instance& instance() const { return instance_; }

 private:
  std::string id_;
  bool wants_address_;
  SteadyTime created_;
  SteadyTime running_since_{};
  Ec2Instance instance_;  // as listed last
};

Task<Ec2Instance> WaitUsable(AwsCloud& cloud, std::string id, bool wants_address) {
  SteadyTime since = cloud.loop().SteadyNow();
  IsUsable is_usable(std::move(id), wants_address, since);
  while (true) {
    auto listing = co_await cloud.instances.After(since);
    if (is_usable(*listing.items, listing.begun, cloud.loop().SteadyNow())) co_return is_usable.instance();
    since = listing.begun;
  }
}

}  // namespace

Task<Instance> CreateMachine(AwsCloud& cloud, MachineReport& machine, CreateParameters parameters) {
  // Known already, unless this is the first call of the adapter.
  std::set<std::string> types{LabelOf(parameters).instance_type};
  co_await cloud.types.Learn(std::move(types));
  driver::QuotaInformation need = NeedOf(cloud, LabelOf(parameters));
  std::string host;
  if (LabelOf(parameters).dedicated_host) host = co_await PrepareHost(cloud, machine, parameters);
  machine.SetState("submit creating instance");
  Ec2Instance submitted = co_await Submit(cloud, parameters, machine.logger(), host);
  cloud.recent.Add(submitted.id);
  machine.logger().Info("Created VM {} as instance {}", parameters.hostname, submitted.id);
  boost::json::value external_id = ExternalId({submitted.id, host});
  co_await machine.SetExternalId(std::move(external_id));
  if (submitted.is_lost()) ThrowEnd(submitted);
  machine.SetState("creating instance");
  Ec2Instance running = co_await WaitUsable(cloud, submitted.id, PoolOf(parameters).public_ipv4);
  machine.SetState("complete");
  running.host = host;
  Instance instance = Describe(cloud, running);
  instance.quota = std::move(need);
  co_return instance;
}

}  // namespace nodepool::drivers::aws
