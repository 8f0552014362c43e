#include "bubble_config.h"

#include <nodepool/driver/cloud/section.h>
#include <nodepool/driver/provider_section.h>

namespace bubble {

using nodepool::config::Schema;
using nodepool::config::Section;
using nodepool::config::Setting;
namespace driver = nodepool::driver;
namespace cloud = nodepool::driver::cloud;

const Schema& ProviderSchema() {
  static const Schema label = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level labels.").Required(),
      Setting("root", Schema::String(), "Directory that the container sees as /, read-only.").Default("/"),
      Setting("ram", Schema::Number(), "Memory that a container counts for.").Default(512).Unit("MiB"),
  });
  static const Schema pool = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool.").Required(),
      Setting("labels", Schema::List(label), "The labels offered here.").Required(),
  });
  static const Schema schema = Schema::Map({
      Setting("state-dir", Schema::String(), "Folder for what is known of the containers.").Required(),
      Setting("network", Schema::String(), "First two numbers of the containers' addresses.")
          .Default("127.83"),
      Setting("port", Schema::Int().Between(1, 65535), "Port of their SSH servers.").Default(2222),
      Setting("max-containers", Schema::Int().Between(0, 10000), "Containers on this host.").Default(100),
      Setting("authorized-key", Schema::String(), "Public key of who may log in."),
      cloud::BootTimeout(30),
      cloud::LaunchTimeout(60),
      cloud::LaunchRetries(),
      Setting("pools", Schema::List(pool.With(driver::PoolSettings())), "Groups of containers.").Required(),
  });
  return schema;
}

std::shared_ptr<const Config> ReadConfig(const nodepool::config::ProviderSection& section,
                                         const nodepool::config::Config& config) {
  auto result = std::make_shared<Config>();
  Section provider = driver::OpenProvider(section, ProviderSchema());
  driver::ReadProvider(section, provider, *result);
  result->state_dir = provider.Text("state-dir");
  result->network = provider.Text("network");
  if (!result->network.starts_with("127.")) throw provider.Fail("network", "must be of 127/8: 127.83");
  result->port = driver::ReadCount(provider, "port");
  result->max_containers = driver::ReadCount(provider, "max-containers");
  result->authorized_key = provider.OptionalText("authorized-key").value_or("");
  cloud::ReadLaunchSettings(provider, *result);
  for (const Section& entry : provider.Sections("pools")) {
    auto pool = std::make_shared<driver::PoolConfig>();
    driver::ReadPool(entry, provider, *pool);
    for (const Section& offer : entry.Sections("labels")) {
      auto label = std::make_shared<Label>();
      label->name = driver::ReadLabelName(offer, "name", config);
      label->root = offer.Text("root");
      label->ram = offer.Float("ram");
      label->cloud_image = label->root;
      label->connection.username = "zuul";
      label->connection.connection_port = result->port;
      pool->Offer(std::move(label));
    }
    result->pools[pool->name] = std::move(pool);
  }
  return result;
}

}  // namespace bubble
