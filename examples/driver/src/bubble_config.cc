#include "bubble_config.h"

#include <nodepool/driver/provider_section.h>

namespace bubble {

using nodepool::config::Bindings;
using nodepool::config::Schema;
using nodepool::config::Section;
using nodepool::config::Setting;
namespace driver = nodepool::driver;
namespace cloud = nodepool::driver::cloud;

namespace {

// Each setting with the member that it is read into, whose initial value is the default.
const Bindings<Label>& LabelSettings() {
  static const Bindings<Label> settings = {
      {Setting("name", "One of the top-level labels.").Required(), &Label::name},
      {Setting("root", "Directory that the container sees as /, read-only."), &Label::root},
      {Setting("ram", "Memory that a container counts for.").Unit("MiB"), &Label::ram},
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
      {Setting("state-dir", "Folder for what is known of the containers.").Required(), &Config::state_dir},
      {Setting("network", "First two numbers of the containers' addresses."), &Config::network},
      {Setting("port", Schema::Port(), "Port of their SSH servers."), &Config::port},
      {Setting("max-containers", Schema::Int().Between(0, 10000), "Containers on this host."),
       &Config::max_containers},
      {Setting("authorized-key", "Public key of who may log in."), &Config::authorized_key},
      cloud::BootTimeout(),
      cloud::LaunchTimeout(),
      cloud::LaunchRetries(),
      Setting("pools", Schema::List(PoolSettings().ToSchema()), "Groups of containers.").Required(),
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
  if (!result->network.starts_with("127.")) throw provider.Fail("network", "must be of 127/8: 127.83");
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<driver::PoolConfig> pool = driver::ReadPool(entry, PoolSettings(), *result);
    for (const Section& offer : entry.Sections("labels")) {
      std::shared_ptr<Label> label = driver::ReadLabel(offer, LabelSettings(), config);
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
