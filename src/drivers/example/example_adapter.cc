#include "drivers/example/example_adapter.h"

namespace nodepool::drivers {

using driver::QuotaInformation;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::MachineReport;
using driver::cloud::Resource;

ExampleAdapter::ExampleAdapter(std::shared_ptr<const driver::ProviderConfig> config)
    : CloudAdapter(std::move(config)) {}

Task<Instance> ExampleAdapter::Create(MachineReport& machine, CreateParameters parameters) {
  machine.SetState("creating the machine");
  std::string id = "test-" + parameters.hostname;
  Instance instance;
  instance.external_id = id;
  instance.name = parameters.hostname;
  instance.metadata = std::move(parameters.metadata);
  instance.quota = QuotaInformation::OneInstance();
  cloud_[id] = instance;

  boost::json::value external_id(id);
  co_await machine.SetExternalId(std::move(external_id));

  instance.interface_ip = "fake";
  instance.public_ipv4 = "fake";
  instance.private_ipv4 = "fake";
  instance.region = config_->region;
  instance.az = "az";
  co_return instance;
}

Task<> ExampleAdapter::Delete(MachineReport& machine, boost::json::value external_id) {
  machine.SetState("deleting the machine");
  cloud_.erase(std::string(external_id.as_string()));
  co_return;
}

Task<std::vector<Instance>> ExampleAdapter::ListInstances() {
  std::vector<Instance> instances;
  for (const auto& [id, instance] : cloud_) instances.push_back(instance);
  co_return instances;
}

Task<std::vector<Resource>> ExampleAdapter::ListResources() {
  std::vector<Resource> resources;
  for (const auto& [id, instance] : cloud_) resources.push_back({"instance", id, instance.metadata});
  co_return resources;
}

Task<> ExampleAdapter::DeleteResource(Resource resource) {
  cloud_.erase(resource.id);
  co_return;
}

}  // namespace nodepool::drivers
