#include "drivers/example/example_config.h"

#include "driver/cloud/section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

using config::Schema;
using config::Section;
using config::Setting;

namespace {

Schema MakeSchema() {
  Schema image = Schema::Map({
      Setting("name", Schema::String(), "What labels call the image."),
      Setting("image-id", Schema::String(), "Its id in the cloud."),
      Setting("username", Schema::String(), "User for logging in."),
      Setting("key", Schema::String(), "Public key to put on the node."),
      Setting("python-path", Schema::String(), "Python interpreter on the node.").Default("auto"),
  });
  Schema label = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level labels.").Required(),
      Setting("cloud-image", Schema::String(), "One of the provider's cloud-images.").Required(),
      Setting("instance-type", Schema::String(), "Kind of machine.").Required(),
  });
  Schema pool = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool.").Required(),
      Setting("labels", Schema::List(label), "The labels offered here.").Required(),
      Setting("use-internal-ip", Schema::Bool(), "Reach nodes by their private address.").Default(false),
  });
  return Schema::Map({
      Setting("region", Schema::String(), "Region of the cloud.").Required(),
      Setting("project", Schema::String(), "Project in the cloud.").Required(),
      Setting("pools", Schema::List(pool.With(PoolSettings())), "Groups of nodes.").Required(),
      Setting("cloud-images", Schema::List(image.With(ConnectionTypeSettings())),
              "Images that exist in the cloud."),
      driver::cloud::BootTimeout(),
      driver::cloud::LaunchRetries(),
      Setting("rate-limit", Schema::Int(), "Calls per second.").Default(1),
  });
}

}  // namespace

const Schema& ExampleSchema() {
  static const Schema schema = MakeSchema();
  return schema;
}

std::shared_ptr<const ExampleConfig> LoadExampleConfig(const config::ProviderSection& section,
                                                       const config::Config& config) {
  auto result = std::make_shared<ExampleConfig>();
  Section provider = OpenProvider(section, ExampleSchema());
  ReadProvider(section, provider, *result);
  result->region = provider.Text("region");
  result->project = provider.Text("project");
  result->boot_timeout = provider.Seconds("boot-timeout");
  result->launch_retries = ReadCount(provider, "launch-retries");

  std::map<std::string, driver::ConnectionSettings> images;
  for (const Section& entry : provider.Sections("cloud-images")) {
    driver::ConnectionSettings& image = images[entry.Text("name")];
    image.username = entry.OptionalText("username");
    image.python_path = entry.Text("python-path");
    ReadConnectionType(entry, image);
  }

  for (const Section& entry : provider.Sections("pools")) {
    auto pool = std::make_shared<driver::PoolConfig>();
    ReadPool(entry, provider, *pool);
    pool->use_internal_ip = entry.Bool("use-internal-ip");
    for (const Section& offer : entry.Sections("labels")) {
      auto label = std::make_shared<ExampleLabel>();
      label->name = ReadLabelName(offer, "name", config);
      label->cloud_image = offer.Text("cloud-image");
      auto image = images.find(*label->cloud_image);
      if (image == images.end()) throw offer.Fail("cloud-image", "is not one of the provider's cloud-images");
      label->connection = image->second;
      label->instance_type = offer.Text("instance-type");
      label->host_key_checking = false;
      pool->Offer(std::move(label));
    }
    result->pools[pool->name] = std::move(pool);
  }
  return result;
}

}  // namespace nodepool::drivers
