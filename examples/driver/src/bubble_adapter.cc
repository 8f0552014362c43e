#include "bubble_adapter.h"

namespace bubble {

using cloud::Instance;
using cloud::Resource;
using driver::QuotaInformation;
using nodepool::Error;
using nodepool::Verdict;

namespace {

constexpr const char* kContainer = "container";

std::string IdOf(const boost::json::value& external_id) {
  return external_id.is_string() ? std::string(external_id.as_string()) : "";
}

QuotaInformation Need(double ram) { return QuotaInformation::Amount({{"instances", 1}, {"ram", ram}}); }

// Translates faults of this host into the framework's errors.
template <class Work>
auto Translated(Work work) {
  return [work = std::move(work)]() mutable {
    try {
      return work();
    } catch (const std::exception& error) {
      throw Error(Verdict::kFail, error.what());
    }
  };
}

}  // namespace

Adapter::Adapter(nodepool::BlockingPool& pool, std::shared_ptr<const driver::ProviderConfig> config)
    : CloudAdapter(std::move(config)), pool_(pool), containers_(config_->state_dir) {}

// The work gets copies of what it uses, because it continues when its task is cancelled.
template <class Work>
auto Adapter::Blocking(Work work) {
  auto call = [work = std::move(work), containers = containers_]() mutable { return work(containers); };
  return nodepool::OnBlockingPool(pool_, Translated(std::move(call)));
}

Task<Instance> Adapter::Create(cloud::MachineReport& machine, cloud::CreateParameters parameters) {
  const Label& label = Own(*parameters.label);
  Plan plan;
  plan.name = parameters.hostname;
  plan.root = label.root;
  plan.network = config_->network;
  plan.port = config_->port;
  plan.ram = label.ram;
  plan.authorized_key = config_->authorized_key;
  plan.metadata = parameters.metadata;

  machine.SetState("preparing the container");
  auto prepare = [plan](Containers& containers) { return containers.Prepare(plan); };
  std::string id = co_await Blocking(prepare);
  boost::json::value external_id(id);
  co_await machine.SetExternalId(std::move(external_id));

  machine.SetState("starting the container");
  auto start = [plan, id](Containers& containers) {
    containers.Start(id, plan);
    return containers.Find(id);
  };
  std::optional<Container> container = co_await Blocking(start);
  if (!container) throw Error(Verdict::kFail, "container " + id + " vanished while it was started");
  Instance instance = Describe(*container);
  co_return instance;
}

Task<> Adapter::Delete(cloud::MachineReport& machine, boost::json::value external_id) {
  machine.SetState("removing the container");
  std::string id = IdOf(external_id);
  auto remove = [id](Containers& containers) { containers.Remove(id); };
  co_await Blocking(remove);
}

Task<std::vector<Instance>> Adapter::ListInstances() {
  auto list = [](Containers& containers) { return containers.List(); };
  std::vector<Container> containers = co_await Blocking(list);
  std::vector<Instance> instances;
  for (const Container& container : containers) instances.push_back(Describe(container));
  co_return instances;
}

Task<std::vector<Resource>> Adapter::ListResources() {
  auto list = [](Containers& containers) { return containers.List(); };
  std::vector<Container> containers = co_await Blocking(list);
  std::vector<Resource> resources;
  for (const Container& container : containers)
    resources.push_back({kContainer, container.id, container.metadata});
  co_return resources;
}

Task<> Adapter::DeleteResource(Resource resource) {
  std::string id = resource.id;
  auto remove = [id](Containers& containers) { containers.Remove(id); };
  co_await Blocking(remove);
}

Task<QuotaInformation> Adapter::QuotaLimits() {
  co_return QuotaInformation::Limit({{"instances", config_->max_containers}});
}

QuotaInformation Adapter::QuotaForLabel(const driver::LabelConfig& label) { return Need(Own(label).ram); }

Task<std::optional<std::string>> Adapter::ConsoleLog(const driver::LabelConfig&,
                                                     boost::json::value external_id) {
  std::string id = IdOf(external_id);
  auto read = [id](Containers& containers) { return containers.Console(id); };
  std::string text = co_await Blocking(read);
  co_return text.empty() ? std::nullopt : std::optional(text);
}

Instance Adapter::Describe(const Container& container) const {
  Instance instance;
  instance.external_id = container.id;
  instance.name = container.name;
  instance.interface_ip = container.address;
  instance.private_ipv4 = container.address;
  instance.metadata = container.metadata;
  instance.quota = Need(container.ram);
  return instance;
}

}  // namespace bubble
