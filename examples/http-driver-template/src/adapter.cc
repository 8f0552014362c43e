#include "adapter.h"

#include <nodepool/base/json_fields.h>

namespace lantern_driver {

namespace json = boost::json;
using cloud::Instance;
using cloud::Resource;
using driver::QuotaInformation;

namespace {

QuotaInformation Need(double ram) { return QuotaInformation::Amount({{"instances", 1}, {"ram", ram}}); }

Instance Describe(const std::string& id, const Machine& machine) {
  Instance instance;
  instance.external_id = id;
  instance.name = machine.name;
  instance.interface_ip = machine.address;
  instance.metadata = machine.metadata;
  instance.quota = Need(machine.ram);
  return instance;
}

}  // namespace

Adapter::Adapter(const driver::cloud::AdapterEnvironment& environment,
                 std::shared_ptr<const driver::ProviderConfig> config)
    : CloudAdapter(std::move(config)),
      http_(environment.loop, environment.blocking_pool, "nodepool-lantern"),
      signer_(config_->token),
      client_(environment.loop, environment.blocking_pool, environment.random, http_, signer_, logger_,
              {.cloud = config_->name.str(), .read_fault = &ReadRefusal}),
      tasks_(environment.loop, logger_),
      machines_(tasks_, environment.random, logger_, "machines of " + config_->name.str(),
                [this] { return ReadList(); }) {}

Task<Machines> Adapter::ReadList() {
  api::ApiRequest request = Request(*config_, "GET", "/machines");
  api::ApiReply reply = co_await client_.CallJson(std::move(request));
  co_return ReadMachines(reply.body);
}

Task<Instance> Adapter::Create(cloud::MachineReport& report, cloud::CreateParameters parameters) {
  report.SetState("creating the machine");
  Machine wanted;
  wanted.name = parameters.hostname;
  wanted.ram = Own(*parameters.label).ram;
  wanted.metadata = std::move(parameters.metadata);
  api::ApiRequest request = Request(*config_, "POST", "/machines");
  request.call.body = BodyOf(wanted);
  api::ApiReply reply = co_await client_.CallJson(std::move(request));
  std::string id = nodepool::TextIn(reply.body.as_object(), "id");
  // At once: from here on the machine is found and deleted whatever happens next.
  json::value external_id(id);
  co_await report.SetExternalId(std::move(external_id));

  report.SetState("starting the machine");
  auto is_running = [&id](const Machines& machines) {
    auto found = machines.find(id);
    return found != machines.end() && found->second.state == "running";
  };
  auto listing = co_await machines_.Until(is_running);
  co_return Describe(id, listing.items->at(id));
}

Task<> Adapter::Remove(std::string id) {
  api::ApiRequest request = Request(*config_, "DELETE", "/machines/" + id);
  co_await client_.Call(std::move(request));  // kNotFound: it is gone
  auto is_gone = [&id](const Machines& machines) { return !machines.contains(id); };
  co_await machines_.Until(is_gone);
}

Task<> Adapter::Delete(cloud::MachineReport& report, json::value external_id) {
  report.SetState("deleting the machine");
  std::string id(external_id.as_string());
  co_await Remove(std::move(id));
}

Task<std::vector<Instance>> Adapter::ListInstances() {
  auto listing = co_await machines_.Fresh();
  std::vector<Instance> instances;
  for (const auto& [id, machine] : *listing.items) instances.push_back(Describe(id, machine));
  co_return instances;
}

Task<std::vector<Resource>> Adapter::ListResources() {
  auto listing = co_await machines_.Fresh();
  std::vector<Resource> resources;
  for (const auto& [id, machine] : *listing.items) resources.push_back({"machine", id, machine.metadata});
  co_return resources;
}

Task<> Adapter::DeleteResource(Resource resource) { return Remove(std::move(resource.id)); }

Task<std::vector<json::value>> Adapter::MissingMachines(std::vector<json::value> ids) {
  return NotListed(std::move(ids));
}

Task<QuotaInformation> Adapter::QuotaLimits() {
  api::ApiRequest request = Request(*config_, "GET", "/quota");
  api::ApiReply reply = co_await client_.CallJson(std::move(request));
  co_return QuotaInformation::Limit({{"instances", nodepool::NumberIn(reply.body.as_object(), "machines")}});
}

QuotaInformation Adapter::QuotaForLabel(const driver::LabelConfig& label) { return Need(Own(label).ram); }

Task<> Adapter::Stop() { co_await tasks_.Stop(); }

}  // namespace lantern_driver
