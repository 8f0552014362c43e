#include "config.h"

#include <nodepool/driver/provider_section.h>

namespace lantern_driver {

using nodepool::config::Bindings;
using nodepool::config::Schema;
using nodepool::config::Section;
using nodepool::config::Setting;
namespace driver = nodepool::driver;

namespace {

// Each setting with the member that it is read into, whose initial value is the default.
const Bindings<Label>& LabelSettings() {
  static const Bindings<Label> settings = {
      {Setting("name", "One of the top-level labels.").Required(), &Label::name},
      {Setting("ram", "Memory of a machine.").Unit("MiB"), &Label::ram},
  };
  return settings;
}

const Bindings<driver::PoolConfig>& PoolSettings() {
  static const Bindings<driver::PoolConfig> settings = driver::PoolSettings().With({
      Setting("labels", Schema::List(LabelSettings().ToSchema()), "The labels offered here.").Required(),
  });
  return settings;
}

const Bindings<Config>& ProviderSettings() {
  static const Bindings<Config> settings = {
      {Setting("url", "Where the cloud's API is.").Required(), &Config::url},
      {Setting("token", "Proves who calls.").Required().Secret(), &Config::token},
      driver::cloud::BootTimeout(),
      driver::cloud::LaunchTimeout(),
      driver::cloud::LaunchRetries(),
      Setting("pools", Schema::List(PoolSettings().ToSchema()), "Groups of machines.").Required(),
  };
  return settings;
}

}  // namespace

const Schema& ProviderSchema() {
  static const Schema schema = ProviderSettings().ToSchema();
  return schema;
}

std::shared_ptr<const Config> ReadConfig(const nodepool::config::ProviderSection& section,
                                         const nodepool::config::Config& config) {
  auto result = std::make_shared<Config>();
  Section provider = driver::ReadProvider(section, ProviderSettings(), *result);
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<driver::PoolConfig> pool = driver::ReadPool(entry, PoolSettings(), *result);
    for (const Section& offer : entry.Sections("labels")) {
      std::shared_ptr<Label> label = driver::ReadLabel(offer, LabelSettings(), config);
      label->cloud_image = "machine";
      label->host_key_checking = false;  // a simulated machine has no SSH server
      pool->Offer(std::move(label));
    }
    result->pools[pool->name] = std::move(pool);
  }
  return result;
}

}  // namespace lantern_driver
