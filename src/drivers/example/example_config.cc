#include "drivers/example/example_config.h"

#include <algorithm>

#include "driver/provider_section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

namespace {

const Bindings<ExampleImage>& ImageSettings() {
  static const Bindings<ExampleImage> settings =
      Bindings<ExampleImage>{
          {Setting("name", "What labels call the image."), &ExampleImage::name},
          {Setting("username", "User for logging in."), &ExampleImage::connection,
           &driver::ConnectionSettings::username},
          {Setting("python-path", "Python interpreter on the node."), &ExampleImage::connection,
           &driver::ConnectionSettings::python_path},
          Setting("image-id", Schema::String(), "Its id in the cloud."),
          Setting("key", Schema::String(), "Public key to put on the node."),
      }
          .With(&ExampleImage::connection, ConnectionTypeSettings());
  return settings;
}

const Bindings<ExampleLabel>& LabelSettings() {
  static const Bindings<ExampleLabel> settings = {
      {Setting("name", "One of the top-level labels.").Required(), &ExampleLabel::name},
      {Setting("cloud-image", "One of the provider's cloud-images.").Required(), &ExampleLabel::cloud_image},
      {Setting("instance-type", "Kind of machine.").Required(), &ExampleLabel::instance_type},
  };
  return settings;
}

const Bindings<driver::PoolConfig>& ExamplePoolSettings() {
  static const Bindings<driver::PoolConfig> settings = PoolSettings().With({
      {Setting("use-internal-ip", "Reach nodes by their private address."),
       &driver::PoolConfig::use_internal_ip},
      Setting("labels", Schema::List(LabelSettings().ToSchema()), "The labels offered here.").Required(),
  });
  return settings;
}

const Bindings<ExampleConfig>& ProviderSettings() {
  static const Bindings<ExampleConfig> settings = {
      {Setting("region", "Region of the cloud.").Required(), &ExampleConfig::region},
      {Setting("project", "Project in the cloud.").Required(), &ExampleConfig::project},
      {Setting("cloud-images", "Images that exist in the cloud."), &ExampleConfig::images, ImageSettings()},
      Setting("pools", Schema::List(ExamplePoolSettings().ToSchema()), "Groups of nodes.").Required(),
      driver::cloud::BootTimeout(),
      driver::cloud::LaunchRetries(),
      Setting("rate-limit", Schema::Int(), "Calls per second.").Default(1),
  };
  return settings;
}

// The images say how to log in to the machines that boot from them.
void Resolve(const Section& section, const ExampleConfig& provider, ExampleLabel& label) {
  auto image = std::ranges::find(provider.images, label.cloud_image, &ExampleImage::name);
  if (image == provider.images.end())
    throw section.Fail("cloud-image", "is not one of the provider's cloud-images");
  label.connection = image->connection;
}

}  // namespace

const config::Schema& ExampleSchema() {
  static const Schema schema = ProviderSettings().ToSchema();
  return schema;
}

std::shared_ptr<const ExampleConfig> LoadExampleConfig(const config::ProviderSection& section,
                                                       const config::Config& config) {
  auto result = std::make_shared<ExampleConfig>();
  Section provider = ReadProvider(section, ProviderSettings(), *result);
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<driver::PoolConfig> pool = ReadPool(entry, ExamplePoolSettings(), *result);
    for (const Section& offer : entry.Sections("labels")) {
      std::shared_ptr<ExampleLabel> label = ReadLabel(offer, LabelSettings(), config);
      Resolve(offer, *result, *label);
      pool->Offer(std::move(label));
    }
    result->pools[pool->name] = std::move(pool);
  }
  return result;
}

}  // namespace nodepool::drivers
