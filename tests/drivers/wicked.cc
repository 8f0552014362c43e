// A driver whose providers do what no driver should, as `mischief` in their section says.
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>

#include "config/schema/bindings.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/plugin.h"
#include "driver/provider_section.h"

namespace wicked {

using nodepool::Error;
using nodepool::Task;
using nodepool::Verdict;
using nodepool::config::Bindings;
using nodepool::config::Schema;
using nodepool::config::Section;
using nodepool::config::Setting;
using nodepool::driver::QuotaInformation;
using namespace nodepool::driver::cloud;
namespace driver = nodepool::driver;

struct Config : driver::ProviderConfig {
  std::string mischief;
  nodepool::Duration block{0};
};

class WickedAdapter : public Adapter {
 public:
  explicit WickedAdapter(std::shared_ptr<const Config> config) : config_(std::move(config)) {}

  Task<Instance> Create(MachineReport& machine, CreateParameters parameters) override {
    if (Is("throw")) throw 42;
    if (Is("block")) std::this_thread::sleep_for(config_->block);
    std::string id = parameters.hostname;
    boost::json::value external_id(id);
    co_await machine.SetExternalId(std::move(external_id));
    Instance instance;
    instance.external_id = id;
    instance.metadata = parameters.metadata;
    instance.quota = QuotaInformation::OneInstance();
    instance.interface_ip = Is("nonsense") ? "\xff\xfe" : "192.0.2.1";
    co_return instance;
  }
  Task<> Delete(MachineReport&, boost::json::value) override { co_return; }
  Task<std::vector<Instance>> ListInstances() override {
    if (Is("list-fails")) throw Error(Verdict::kRetry, "503 the list is not available");
    if (Is("throw")) throw std::runtime_error("a list that throws");
    co_return std::vector<Instance>();
  }
  Task<std::vector<Resource>> ListResources() override {
    if (Is("list-fails")) throw Error(Verdict::kRetry, "503 the list is not available");
    std::vector<Resource> resources(Is("nonsense") ? 1 : 0);
    co_return resources;
  }
  Task<> DeleteResource(Resource) override { co_return; }
  driver::Readiness LabelReady(const driver::LabelConfig&) override {
    if (Is("throw")) throw std::runtime_error("a label that throws");
    return driver::Readiness::kReady;
  }
  QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override {
    if (Is("nan")) return QuotaInformation::Amount({{"cores", std::numeric_limits<double>::quiet_NaN()}});
    return Adapter::QuotaForLabel(label);
  }

 private:
  bool Is(std::string_view mischief) const { return config_->mischief == mischief; }

  std::shared_ptr<const Config> config_;
};

class WickedDriver : public CloudDriver {
 public:
  std::string_view name() const override { return "wicked"; }
  const Schema& ProviderSchema() const override {
    static const Schema schema = Settings().ToSchema();
    return schema;
  }
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(
      const nodepool::config::ProviderSection& section, nodepool::config::Config& config) override {
    auto result = std::make_shared<Config>();
    Section provider = driver::ReadProvider(section, Settings(), *result);
    if (result->mischief == "load-throws") throw std::logic_error("a section that throws");
    if (result->mischief == "load-null") return nullptr;
    for (const Section& entry : provider.Sections("pools")) {
      auto pool = driver::ReadPool(entry, PoolSettings(), *result);
      for (const std::string& name : entry.TextList("labels")) {
        auto label = std::make_shared<driver::LabelConfig>();
        label->name = nodepool::LabelName(name);
        driver::CheckLabelName(label->name, entry, "labels", config);
        label->host_key_checking = false;
        pool->Offer(std::move(label));
      }
      result->pools[pool->name] = std::move(pool);
    }
    return result;
  }
  std::unique_ptr<Adapter> CreateAdapter(const driver::cloud::AdapterEnvironment&,
                                         std::shared_ptr<const driver::ProviderConfig> config) override {
    auto own = std::dynamic_pointer_cast<const Config>(config);
    if (own->mischief == "no-adapter") return nullptr;
    return std::make_unique<WickedAdapter>(std::move(own));
  }

 private:
  static Bindings<driver::PoolConfig> PoolSettings() {
    return driver::PoolSettings().With({Setting("labels", Schema::List(Schema::String()), "Labels.")});
  }
  static Bindings<Config> Settings() {
    return {
        {Setting("mischief", "What to do wrong.").Required(), &Config::mischief},
        {Setting("block-seconds", "For how long to block."), &Config::block},
        Setting("pools", Schema::List(PoolSettings().ToSchema()), "Pools."),
    };
  }
};

}  // namespace wicked

NODEPOOL_DRIVER(wicked::WickedDriver)
