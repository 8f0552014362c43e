#include "drivers/aws/compute/delete_machine.h"

namespace nodepool::drivers::aws {

namespace {

constexpr Duration kAgain = std::chrono::seconds(5);

// False: there is no such instance. EC2 may deny one that was just made.
Task<bool> Terminate(AwsCloud& cloud, std::string id) {
  while (true) {
    bool is_known = co_await cloud.terminations.Terminate(id);
    if (is_known || !cloud.recent.Contains(id)) co_return is_known;
    co_await cloud.loop().SleepFor(kAgain);
  }
}

}  // namespace

Task<> DeleteMachine(AwsCloud& cloud, driver::cloud::MachineReport& machine, std::string instance_id) {
  machine.SetState("deleting instance");
  machine.logger().Info("Deleting instance {}", instance_id);
  bool was_there = co_await Terminate(cloud, instance_id);
  if (!was_there) co_return;
  auto is_gone = [&instance_id](const Ec2Instances& list) {
    auto found = list.find(instance_id);
    return found == list.end() || found->second.is_gone();
  };
  co_await cloud.instances.Until(is_gone);
  machine.SetState("complete");
}

}  // namespace nodepool::drivers::aws
