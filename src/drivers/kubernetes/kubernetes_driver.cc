#include "drivers/kubernetes/kubernetes_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/task.h"
#include "base/version.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "driver/driver.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/config/kubernetes_config.h"
#include "drivers/kubernetes/machine/create_machine.h"
#include "drivers/kubernetes/machine/machines.h"
#include "net/http/http_client.h"
#include "process/command.h"

namespace nodepool::drivers {

using kubernetes::Kind;

KubernetesDriver::KubernetesDriver(Kind kind, kubernetes::Places places)
    : kind_(kind), places_(std::move(places)) {}

std::string_view KubernetesDriver::name() const {
  switch (kind_) {
    case Kind::kOpenshift:
      return "openshift";
    case Kind::kOpenshiftPods:
      return "openshiftpods";
    case Kind::kKubernetes:
      break;
  }
  return "kubernetes";
}

const config::Schema& KubernetesDriver::ProviderSchema() const { return kubernetes::SchemaOf(kind_); }

std::shared_ptr<const driver::ProviderConfig> KubernetesDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  auto loaded = kubernetes::LoadKubernetesConfig(kind_, section, config);
  try {
    kubernetes::ReadConnection(places_, loaded->context);
  } catch (const Error& lack) {
    std::string message = fmt::format("provider {}: {}", section.name, lack.message());
    config.warnings.push_back(config::ErrorAt(section.source.position(), message).In(config.path).message());
  }
  return loaded;
}

std::unique_ptr<driver::cloud::Adapter> KubernetesDriver::CreateAdapter(
    const driver::cloud::AdapterEnvironment& environment,
    std::shared_ptr<const driver::ProviderConfig> config) {
  kubernetes::Means means;
  means.http = std::make_unique<net::CurlClient>(environment.loop, environment.blocking_pool,
                                                 "nodepool/" + std::string(Version()));
  means.runner = std::make_unique<process::SystemRunner>(environment.loop);
  means.environment = places_.environment;
  means.read_files = [&pool = environment.blocking_pool, places = places_,
                      context = driver::cloud::As<kubernetes::KubernetesConfig>(*config).context] {
    return kubernetes::ReadFilesOf(pool, places, context);
  };
  return std::make_unique<kubernetes::KubernetesAdapter>(environment, config, std::move(means));
}

}  // namespace nodepool::drivers

namespace nodepool::drivers::kubernetes {

using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::MachineReport;
using driver::cloud::Resource;

namespace {

constexpr const char* kResourceType = "node";  // the counter is leaked.nodes
constexpr Duration kListLasts = std::chrono::seconds(30);

// For deletions of which no record is left.
class NoReport : public MachineReport {
 public:
  explicit NoReport(const log::Logger& logger) : logger_(logger) {}
  void SetState(std::string) override {}
  Task<> SetExternalId(boost::json::value) override { co_return; }
  const log::Logger& logger() const override { return logger_; }
  int attempt() const override { return 1; }

 private:
  const log::Logger& logger_;
};

// A quota may name what no label says that it needs, such as limits or numbers of secrets: what is short for
// others is not known then.
driver::Refusal RefusalOf(const Failure& failure, const KubernetesLabel& label) {
  std::string message = failure.message();
  std::set<std::string> names = ExceededResources(message);
  if (!std::ranges::all_of(names, [&](const auto& name) { return label.need.contains(name); })) names.clear();
  return {driver::Refusal::Kind::kQuota, std::move(message), std::move(names)};
}

}  // namespace

KubernetesAdapter::KubernetesAdapter(driver::cloud::AdapterEnvironment environment,
                                     const std::shared_ptr<const driver::ProviderConfig>& config, Means means)
    : CloudAdapter(config), cloud_(std::move(environment), config_, std::move(means)) {}

void KubernetesAdapter::Start() {
  if (config_->cluster_quota) capacity_ = MakeCapacity(cloud_);
}

Task<Instance> KubernetesAdapter::Create(MachineReport& machine, CreateParameters parameters) {
  std::shared_ptr<const driver::LabelConfig> label = parameters.label;
  if (capacity_) capacity_->RequireRoom(Own(*label));
  Task<Instance> creation = CreateMachine(cloud_, machine, std::move(parameters));
  Outcome<Instance> created = co_await Attempt(std::move(creation));
  if (created) co_return std::move(*created);
  if (FailedWith(created, Verdict::kQuota)) throw RefusalOf(created.error(), Own(*label));
  created.error().Rethrow();
}

Task<> KubernetesAdapter::Delete(MachineReport& machine, boost::json::value external_id) {
  if (!external_id.is_string()) co_return;
  std::string id(external_id.as_string());
  std::string pool = PoolOf(machine, id);
  co_await DeleteMachine(cloud_, machine, std::move(id), std::move(pool));
}

std::string KubernetesAdapter::PoolOf(const MachineReport& machine, const std::string& external_id) const {
  if (config_->kind != Kind::kOpenshiftPods) return "";
  if (machine.pool() != nullptr) return machine.pool()->name.str();
  // The longest name that fits: pool "a" has no pod "b-small-1" of pool "a-b" here.
  std::string found;
  for (const auto& [name, pool] : config_->pools) {
    if (external_id.starts_with(name.str() + "-") && name.str().size() > found.size()) found = name.str();
  }
  if (found.empty()) {
    throw Error(Verdict::kFail, fmt::format("{} is in the namespace of a pool that is no longer configured; "
                                            "configure the pool again, without labels, until it is deleted",
                                            external_id));
  }
  return found;
}

Task<std::vector<Instance>> KubernetesAdapter::ListInstances() {
  std::vector<Object> own = co_await ListOwn(cloud_.cluster, *config_);
  std::vector<Instance> instances;
  for (Object& object : own) {
    Instance instance;
    instance.name = ExternalIdOf(config_->kind, object);
    instance.external_id = instance.name;
    instance.metadata = std::move(object.labels);
    instance.quota = driver::QuotaInformation::OneInstance();
    instances.push_back(std::move(instance));
  }
  co_return instances;
}

Task<std::vector<Resource>> KubernetesAdapter::ListResources() {
  SteadyTime begun = cloud_.loop().SteadyNow();
  std::vector<Object> own = co_await ListOwn(cloud_.cluster, *config_);
  listed_.clear();
  listed_at_ = begun;
  std::vector<Resource> resources;
  for (Object& object : own) {
    std::string id = ExternalIdOf(config_->kind, object);
    if (IsUsable(cloud_, object)) listed_.insert(id);
    if (object.is_terminating) continue;
    if (config_->kind == Kind::kOpenshiftPods) object.labels[driver::cloud::kPoolKey] = object.name_space;
    resources.push_back({kResourceType, std::move(id), std::move(object.labels)});
  }
  co_return resources;
}

Task<> KubernetesAdapter::DeleteResource(Resource resource) {
  NoReport report(cloud_.logger);
  std::string pool = resource.metadata[driver::cloud::kPoolKey];
  co_await DeleteMachine(cloud_, report, std::move(resource.id), std::move(pool));
}

Task<std::vector<boost::json::value>> KubernetesAdapter::MissingMachines(
    std::vector<boost::json::value> ids) {
  if (cloud_.loop().SteadyNow() - kListLasts > listed_at_ || !AreListed(ids)) co_await ListResources();
  std::erase_if(ids, [this](const boost::json::value& id) { return IsListed(id); });
  co_return ids;
}

bool KubernetesAdapter::IsListed(const boost::json::value& id) const {
  return id.is_string() && listed_.contains(std::string(id.as_string()));
}

// What was made since the list is not in it.
bool KubernetesAdapter::AreListed(const std::vector<boost::json::value>& ids) const {
  return std::ranges::all_of(ids, [this](const boost::json::value& id) { return IsListed(id); });
}

Task<driver::cloud::AccessState> KubernetesAdapter::StateOfAccess(driver::cloud::NodeAccess access) {
  return kubernetes::StateOfAccess(cloud_, std::move(access));
}

Task<driver::cloud::NodeAccess> KubernetesAdapter::RenewAccess(boost::json::value,
                                                               driver::cloud::NodeAccess access) {
  return kubernetes::RenewAccess(cloud_, std::move(access));
}

Task<driver::QuotaInformation> KubernetesAdapter::QuotaLimits() {
  if (!capacity_) co_return driver::QuotaInformation::Limit({});
  Resources limits = co_await capacity_->Limits();
  co_return driver::QuotaInformation::Limit(std::move(limits));
}

std::optional<driver::QuotaInformation> KubernetesAdapter::UsedByOthers() {
  if (!capacity_) return std::nullopt;
  return driver::QuotaInformation::Amount(capacity_->UsedByOthers());
}

driver::QuotaInformation KubernetesAdapter::QuotaForLabel(const driver::LabelConfig& label) {
  const KubernetesLabel& own = Own(label);
  if (!own.fault.empty()) throw Error(Verdict::kInvalid, own.fault);
  if (capacity_) capacity_->RequirePossible(own);
  return driver::QuotaInformation::Amount(own.need);
}

Task<> KubernetesAdapter::Stop() { co_await cloud_.watches.Stop(); }

}  // namespace nodepool::drivers::kubernetes
