#include "drivers/metastatic/metastatic_driver.h"

#include "driver/cloud/cloud_driver.h"
#include "driver/driver.h"
#include "drivers/metastatic/metastatic_adapter.h"
#include "drivers/metastatic/metastatic_config.h"

namespace nodepool::drivers {

namespace {

// A command gives slots back; all else is the work of launchers.
class MetastaticTools : public driver::OperatorTools {
 public:
  MetastaticTools(store::Store& store, std::string owner) : store_(store), owner_(std::move(owner)) {}

  Task<> DeleteResources(const NodeId& id, const Node& node) override {
    return Vacate(id, ParsePlace(node.driver_data.value()));
  }

 private:
  Task<> Vacate(NodeId user, std::optional<Place> place) {
    if (!place) co_return;
    auto change = [this, &user](Node& record) {
      std::optional<BackingNode> backing = BackingNodeInUse(record, owner_);
      bool is_changed = backing && RemoveUser(user, owner_, *backing, record);
      return is_changed ? store::Change::kWrite : store::Change::kSkip;
    };
    co_await store_.nodes.UpdateUnlocked(place->backing_node, change);
  }

  store::Store& store_;
  std::string owner_;
};

}  // namespace

const config::Schema& MetastaticDriver::ProviderSchema() const { return MetastaticSchema(); }

std::shared_ptr<const driver::ProviderConfig> MetastaticDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return LoadMetastaticConfig(section, config);
}

std::unique_ptr<driver::Provider> MetastaticDriver::CreateProvider(
    driver::ProviderEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) {
  auto make = [&records = environment.records, config](const driver::cloud::AdapterEnvironment& of_adapter) {
    return std::make_unique<MetastaticAdapter>(of_adapter, records, config);
  };
  driver::cloud::HostKeyScan scan = driver::cloud::NetworkScan(environment);
  return driver::cloud::MakeCloudProvider(std::move(environment), config, make, std::move(scan));
}

std::unique_ptr<driver::OperatorTools> MetastaticDriver::CreateOperatorTools(
    driver::ToolsEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) {
  return std::make_unique<MetastaticTools>(environment.store, OwnerName(config->name));
}

}  // namespace nodepool::drivers
