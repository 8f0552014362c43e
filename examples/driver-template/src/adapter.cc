#include "adapter.h"

namespace lantern_driver {

using cloud::Instance;
using cloud::Resource;
using driver::QuotaInformation;

namespace {

QuotaInformation Need(double ram) { return QuotaInformation::Amount({{"instances", 1}, {"ram", ram}}); }

Instance Describe(const Machine& machine) {
  Instance instance;
  instance.external_id = machine.id;
  instance.name = machine.id;
  instance.interface_ip = "127.0.0.1";
  instance.metadata = machine.metadata;
  instance.quota = Need(machine.ram);
  return instance;
}

}  // namespace

Adapter::Adapter(nodepool::BlockingPool& pool, std::shared_ptr<const driver::ProviderConfig> config)
    : CloudAdapter(std::move(config)), pool_(pool), machines_(config_->state_dir) {}

Task<Instance> Adapter::Create(cloud::MachineReport& report, cloud::CreateParameters parameters) {
  Machine machine;
  machine.id = parameters.hostname;
  machine.ram = Own(*parameters.label).ram;
  machine.metadata = std::move(parameters.metadata);
  // This driver chooses the id itself, so it stores the id before the machine exists. If the cloud chooses
  // it, do this right after the call that creates the machine.
  boost::json::value id(machine.id);
  co_await report.SetExternalId(std::move(id));

  report.SetState("making the machine");
  // The work runs on another thread and continues if this coroutine is cancelled, so it gets copies.
  auto make = [machines = machines_, machine] { machines.Make(machine); };
  co_await nodepool::OnBlockingPool(pool_, make);
  co_return Describe(machine);
}

Task<> Adapter::Delete(cloud::MachineReport& report, boost::json::value external_id) {
  report.SetState("removing the machine");
  auto remove = [machines = machines_, id = std::string(external_id.as_string())] { machines.Remove(id); };
  co_await nodepool::OnBlockingPool(pool_, remove);
}

Task<std::vector<Machine>> Adapter::List() {
  auto list = [machines = machines_] { return machines.List(); };
  return nodepool::OnBlockingPool(pool_, list);
}

Task<std::vector<Instance>> Adapter::ListInstances() {
  std::vector<Machine> machines = co_await List();
  std::vector<Instance> instances;
  for (const Machine& machine : machines) instances.push_back(Describe(machine));
  co_return instances;
}

Task<std::vector<Resource>> Adapter::ListResources() {
  std::vector<Machine> machines = co_await List();
  std::vector<Resource> resources;
  for (const Machine& machine : machines) resources.push_back({"machine", machine.id, machine.metadata});
  co_return resources;
}

Task<> Adapter::DeleteResource(Resource resource) {
  auto remove = [machines = machines_, id = resource.id] { machines.Remove(id); };
  co_await nodepool::OnBlockingPool(pool_, remove);
}

Task<std::vector<boost::json::value>> Adapter::MissingMachines(std::vector<boost::json::value> ids) {
  return NotListed(std::move(ids));
}

Task<QuotaInformation> Adapter::QuotaLimits() {
  co_return QuotaInformation::Limit({{"instances", config_->max_machines}});
}

QuotaInformation Adapter::QuotaForLabel(const driver::LabelConfig& label) { return Need(Own(label).ram); }

}  // namespace lantern_driver
