#include "drivers/openstack/config/openstack_config.h"

#include "driver/cloud/adapter.h"
#include "driver/provider_section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

namespace cloud = driver::cloud;
namespace {

template <class Image>
config::Binding<Image> ConfigDrive() {
  return {Setting("config-drive", "Give nodes a config drive; false leaves it to the cloud."),
          &Image::config_drive};
}

const Bindings<OpenstackDiskImage>& OpenstackDiskImageSettings() {
  static const Bindings<OpenstackDiskImage> settings =
      Bindings<OpenstackDiskImage>(cloud::DiskImageSettings()).With({ConfigDrive<OpenstackDiskImage>()});
  return settings;
}

const Bindings<OpenstackCloudImage>& OpenstackCloudImageSettings() {
  static const Bindings<OpenstackCloudImage> settings =
      Bindings<OpenstackCloudImage>(cloud::CloudImageSettings()).With({ConfigDrive<OpenstackCloudImage>()});
  return settings;
}

const Bindings<OpenstackLabel>& OpenstackLabelSettings() {
  static const Bindings<OpenstackLabel> settings =
      Bindings<OpenstackLabel>(cloud::LabelSettings())
          .With({
              {Setting("min-ram", "The smallest flavor with at least this memory is used.").Unit("MiB"),
               &OpenstackLabel::min_ram},
              {Setting("flavor-name", "Flavor; with min-ram a part of its name."),
               &OpenstackLabel::flavor_name},
              {Setting("key-name", "Key pair of the cloud to put on the node."), &OpenstackLabel::key_name},
              {Setting("console-log", "Log the console of nodes that fail to start."),
               &OpenstackLabel::console_log},
              {Setting("boot-from-volume", "Boot from a new volume."), &OpenstackLabel::boot_from_volume},
              {Setting("volume-size", "Size of that volume.").Unit("GB"), &OpenstackLabel::volume_size},
              {Setting("instance-properties", "Metadata of the server."),
               &OpenstackLabel::instance_properties},
              {Setting("dynamic-instance-properties", "Metadata that is made from the node request."),
               &OpenstackLabel::dynamic_instance_properties},
              {Setting("userdata", "User data for cloud-init.").Secret(), &OpenstackLabel::userdata},
              {Setting("networks", "Networks instead of the pool's."), &OpenstackLabel::networks},
          })
          .RequireOneOf({"min-ram", "flavor-name"})
          .RequireOneOf({"diskimage", "cloud-image"});
  return settings;
}

const Bindings<OpenstackPool>& OpenstackPoolSettings() {
  static const Bindings<OpenstackPool> settings =
      Bindings<OpenstackPool>(cloud::CloudPoolSettings())
          .With({
              {Setting("networks", "Networks by name or id, in this order."), &OpenstackPool::networks},
              {Setting("security-groups", "Security groups by name or id."), &OpenstackPool::security_groups},
              {Setting("auto-floating-ip", "Give nodes a floating address when they need one."),
               &OpenstackPool::auto_floating_ip},
              Setting("labels", Schema::List(OpenstackLabelSettings().ToSchema()),
                      "The labels offered here."),
          });
  return settings;
}

const Bindings<OpenstackConfig>& OpenstackSettings() {
  static const Bindings<OpenstackConfig> settings =
      Bindings<OpenstackConfig>{
          {Setting("cloud", "Name of the cloud in clouds.yaml.").RequiredByValidator(),
           &OpenstackConfig::cloud},
          {Setting("region-name", "Region of the cloud."), &OpenstackConfig::region_name},
          {Setting("rate", "Pause between calls that change something; default: none.").Unit("seconds"),
           &OpenstackConfig::rate},
          cloud::BootTimeout(),
          cloud::LaunchTimeout(),
          cloud::LaunchRetries(),
          {Setting("clean-floating-ips", "Remove floating addresses of the project that nothing uses."),
           &OpenstackConfig::clean_floating_ips},
          {Setting(
               "port-cleanup-interval",
               "How often to remove ports of the project that are down, which assumes that Nodepool alone "
               "uses it; 0: never."),
           &OpenstackConfig::port_cleanup_interval},
          {Setting("delete-legacy-leaked",
                   "Remove leaked servers also when only metadata in the form of 2015 shows that they are "
                   "ours."),
           &OpenstackConfig::deletes_legacy_leaked},
          Setting("nodepool-id", Schema::String(), "Without effect."),
          Setting("diskimages", Schema::List(OpenstackDiskImageSettings().ToSchema()),
                  "Images of the builder to upload here."),
          Setting("cloud-images", Schema::List(OpenstackCloudImageSettings().ToSchema()),
                  "Images that exist in the cloud."),
          Setting("pools", Schema::List(OpenstackPoolSettings().ToSchema()), "Groups of nodes."),
      }
          .With(cloud::UploadSettings())
          .With(cloud::SettingsOfVersion2());
  return settings;
}

}  // namespace

const OpenstackDiskImage* OpenstackConfig::FindDiskImage(const ImageName& name) const {
  auto found = diskimages.find(name);
  if (found == diskimages.end()) return nullptr;
  return &cloud::As<OpenstackDiskImage>(*found->second);
}

const Schema& OpenstackSchema() {
  static const Schema schema = OpenstackSettings().ToSchema();
  return schema;
}

void ReadOpenstackConfig(const config::ProviderSection& section, const std::string& image_format,
                         config::Config& config, OpenstackConfig& result) {
  Section provider = ReadProvider(section, OpenstackSettings(), result);
  result.manages_images = true;
  result.image_format = image_format;
  cloud::ReadDiskImages(provider, OpenstackDiskImageSettings(), config, result);
  result.cloud_images = cloud::ReadCloudImages(provider, OpenstackCloudImageSettings());
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<OpenstackPool> pool = ReadPool(entry, OpenstackPoolSettings(), result);
    OpenstackLabel defaults;
    defaults.networks = pool->networks;
    for (const Section& offer : entry.Sections("labels")) {
      pool->Offer(cloud::ReadLabel(offer, OpenstackLabelSettings(), *pool, result.cloud_images, config,
                                   result, defaults));
    }
    result.pools[pool->name] = std::move(pool);
  }
}

}  // namespace nodepool::drivers

namespace nodepool::drivers::openstack {

std::shared_ptr<const OpenstackProviderConfig> LoadOpenstackConfig(const config::ProviderSection& section,
                                                                   config::Config& config,
                                                                   const CloudFiles& files) {
  Section provider = driver::OpenProvider(section, OpenstackSchema());
  auto result = std::make_shared<OpenstackProviderConfig>();
  try {
    result->cloud_config =
        ResolveCloud(files, provider.OptionalText("cloud"), provider.OptionalText("region-name"));
  } catch (const Error& error) {
    result->fault = provider.Fail("cloud", error.message()).In(config.path).message();
    result->cloud_config.image_format.clear();  // not known, so that no build is made for it
  }
  ReadOpenstackConfig(section, result->cloud_config.image_format, config, *result);
  result->fingerprint += "\n" + result->cloud_config.fingerprint + result->fault;
  return result;
}

}  // namespace nodepool::drivers::openstack
