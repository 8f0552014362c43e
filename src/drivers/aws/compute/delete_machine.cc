#include "drivers/aws/compute/machines.h"

namespace nodepool::drivers::aws {

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

}  // namespace nodepool::drivers::aws
