#include "drivers/openstack/config/openstack_config.h"

#include "drivers/provider_section.h"

namespace nodepool::drivers {

namespace cloud = driver::cloud;
using config::Schema;
using config::Section;
using config::Setting;

namespace {

Schema Texts() { return Schema::List(Schema::String()); }

Setting ConfigDrive() {
  return Setting("config-drive", Schema::Bool(), "Give nodes a config drive; false leaves it to the cloud.")
      .Default(false);
}

Schema LabelSchema() {
  Schema label = cloud::LabelSchema().With({
      Setting("min-ram", Schema::Int(), "The smallest flavor with at least this memory is used.")
          .Default(0)
          .Unit("MiB"),
      Setting("flavor-name", Schema::String(), "Flavor; with min-ram a part of its name."),
      Setting("key-name", Schema::String(), "Key pair of the cloud to put on the node."),
      Setting("console-log", Schema::Bool(), "Log the console of nodes that fail to start.").Default(false),
      Setting("boot-from-volume", Schema::Bool(), "Boot from a new volume.").Default(false),
      Setting("volume-size", Schema::Int(), "Size of that volume.").Default(50).Unit("GB"),
      Setting("instance-properties", Schema::OpenMap(Schema::Any()), "Metadata of the server."),
      Setting("dynamic-instance-properties", Schema::OpenMap(Schema::Any()),
              "Metadata that is made from the node request."),
      Setting("userdata", Schema::String(), "User data for cloud-init.").Secret(),
      Setting("networks", Texts(), "Networks instead of the pool's."),
  });
  return label.RequireOneOf({"min-ram", "flavor-name"}).RequireOneOf({"diskimage", "cloud-image"});
}

Schema PoolSchema() {
  return cloud::PoolSchema(LabelSchema())
      .With({
          Setting("networks", Texts(), "Networks by name or id, in this order."),
          Setting("security-groups", Texts(), "Security groups by name or id."),
          Setting("auto-floating-ip", Schema::Bool(), "Give nodes a floating address when they need one.")
              .Default(true),
      });
}

Schema MakeSchema() {
  Schema disk_image = cloud::DiskImageSchema().With({ConfigDrive()});
  Schema cloud_image = cloud::CloudImageSchema().With({ConfigDrive()});
  Schema provider = Schema::Map({
      Setting("cloud", Schema::String(), "Name of the cloud in clouds.yaml.").RequiredByValidator(),
      Setting("region-name", Schema::String(), "Region of the cloud."),
      Setting("rate", Schema::Number(), "Pause between calls that change something; default: none.")
          .Unit("seconds"),
      cloud::BootTimeout(),
      cloud::LaunchTimeout(),
      cloud::LaunchRetries(),
      Setting("clean-floating-ips", Schema::Bool(), "Remove floating addresses that nothing uses.")
          .Default(false),
      Setting("port-cleanup-interval", Schema::Int(), "How often to remove ports that are down; 0: never.")
          .Default(600)
          .Unit("seconds"),
      Setting("delete-legacy-leaked", Schema::Bool(),
              "Remove leaked servers also when only metadata in the form of 2015 shows that they are ours.")
          .Default(false),
      Setting("nodepool-id", Schema::String(), "Without effect."),
      Setting("diskimages", Schema::List(disk_image), "Images of the builder to upload here."),
      Setting("cloud-images", Schema::List(cloud_image), "Images that exist in the cloud."),
      Setting("pools", Schema::List(PoolSchema()), "Groups of nodes."),
  });
  return provider.With(cloud::UploadSettings()).With(cloud::SettingsOfVersion2());
}

std::shared_ptr<OpenstackLabel> ReadOpenstackLabel(const Section& section, const Section& pool_section,
                                                   const OpenstackPool& pool, const config::Config& config,
                                                   OpenstackConfig& provider) {
  auto label = std::make_shared<OpenstackLabel>();
  cloud::ReadLabel(section, pool_section, config, cloud::FindIn(provider.cloud_images), provider, *label);
  label->min_ram = ReadCount(section, "min-ram");
  label->flavor_name = section.OptionalText("flavor-name");
  label->key_name = section.OptionalText("key-name");
  label->console_log = section.Bool("console-log");
  label->boot_from_volume = section.Bool("boot-from-volume");
  label->volume_size = ReadCount(section, "volume-size");
  label->instance_properties = ReadObject(section, "instance-properties");
  for (auto& [key, text] : section.TextMap("dynamic-instance-properties")) {
    label->dynamic_instance_properties[key] = std::move(text);
  }
  label->userdata = section.OptionalText("userdata");
  label->networks = section.Has("networks") ? section.TextList("networks") : pool.networks;
  return label;
}

std::shared_ptr<const OpenstackPool> ReadOpenstackPool(const Section& section,
                                                       const Section& provider_section,
                                                       const config::Config& config,
                                                       OpenstackConfig& provider) {
  auto pool = std::make_shared<OpenstackPool>();
  cloud::ReadCloudPool(section, provider_section, *pool);
  pool->networks = section.TextList("networks");
  pool->security_groups = section.TextList("security-groups");
  pool->auto_floating_ip = section.Bool("auto-floating-ip");
  for (const Section& label_section : section.Sections("labels")) {
    pool->Offer(ReadOpenstackLabel(label_section, section, *pool, config, provider));
  }
  return pool;
}

}  // namespace

const OpenstackDiskImage* OpenstackConfig::FindDiskImage(const ImageName& name) const {
  auto found = diskimages.find(name);
  if (found == diskimages.end()) return nullptr;
  return &dynamic_cast<const OpenstackDiskImage&>(*found->second);
}

const Schema& OpenstackSchema() {
  static const Schema schema = MakeSchema();
  return schema;
}

void ReadOpenstackConfig(const config::ProviderSection& section, const std::string& image_format,
                         config::Config& config, OpenstackConfig& result) {
  Section provider = OpenProvider(section, OpenstackSchema());
  ReadProvider(section, provider, result);
  result.manages_images = true;
  result.image_format = image_format;
  result.cloud = provider.OptionalText("cloud");
  result.region_name = provider.OptionalText("region-name");
  result.rate = provider.OptionalFloat("rate");
  cloud::ReadLaunchSettings(provider, result);
  cloud::ReadUploadSettings(provider, result);
  result.clean_floating_ips = provider.Bool("clean-floating-ips");
  result.port_cleanup_interval = provider.Seconds("port-cleanup-interval");
  result.deletes_legacy_leaked = provider.Bool("delete-legacy-leaked");
  for (const Section& entry : provider.Sections("diskimages")) {
    auto image = std::make_shared<OpenstackDiskImage>();
    cloud::ReadDiskImage(entry, config, result, *image);
    image->config_drive = entry.Bool("config-drive");
    result.diskimages[image->name] = image;
  }
  for (const Section& entry : provider.Sections("cloud-images")) {
    OpenstackCloudImage image;
    cloud::ReadCloudImage(entry, image);
    image.config_drive = entry.Bool("config-drive");
    result.cloud_images[image.name] = std::move(image);
  }
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<const OpenstackPool> pool = ReadOpenstackPool(entry, provider, config, result);
    result.pools[pool->name] = pool;
  }
}

}  // namespace nodepool::drivers
