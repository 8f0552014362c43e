#include "config.h"

#include <nodepool/driver/cloud/section.h>
#include <nodepool/driver/provider_section.h>

namespace lantern_driver {

using nodepool::config::Schema;
using nodepool::config::Section;
using nodepool::config::Setting;
namespace driver = nodepool::driver;

const Schema& ProviderSchema() {
  static const Schema label = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level labels.").Required(),
      Setting("ram", Schema::Number(), "Memory of a machine.").Default(512).Unit("MiB"),
  });
  static const Schema pool = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool.").Required(),
      Setting("labels", Schema::List(label), "The labels offered here.").Required(),
  });
  static const Schema schema = Schema::Map({
      Setting("url", Schema::String(), "Where the cloud's API is.").Required(),
      Setting("token", Schema::String(), "Proves who calls.").Required(),
      driver::cloud::BootTimeout(),
      driver::cloud::LaunchTimeout(),
      driver::cloud::LaunchRetries(),
      Setting("pools", Schema::List(pool.With(driver::PoolSettings())), "Groups of machines.").Required(),
  });
  return schema;
}

std::shared_ptr<const Config> ReadConfig(const nodepool::config::ProviderSection& section,
                                         const nodepool::config::Config& config) {
  auto result = std::make_shared<Config>();
  Section provider = driver::OpenProvider(section, ProviderSchema());
  driver::ReadProvider(section, provider, *result);
  driver::cloud::ReadLaunchSettings(provider, *result);
  result->url = provider.Text("url");
  result->token = provider.Text("token");
  for (const Section& entry : provider.Sections("pools")) {
    auto pool = std::make_shared<driver::PoolConfig>();
    driver::ReadPool(entry, provider, *pool);
    for (const Section& offer : entry.Sections("labels")) {
      auto label = std::make_shared<Label>();
      label->name = driver::ReadLabelName(offer, "name", config);
      label->ram = offer.Float("ram");
      label->cloud_image = "machine";
      label->host_key_checking = false;  // a simulated machine has no SSH server
      pool->Offer(std::move(label));
    }
    result->pools[pool->name] = std::move(pool);
  }
  return result;
}

}  // namespace lantern_driver
