#include "drivers/openstack/openstack_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/disk_images.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

using config::Schema;
using config::Section;
using config::Setting;

namespace {

Schema Texts() { return Schema::List(Schema::String()); }

Schema DiskImageSchema() {
  Schema schema = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level diskimages.").Required(),
      Setting("pause", Schema::Bool(), "Do not upload the image here.").Default(false),
      Setting("meta", Schema::OpenMap(Schema::Any()), "Properties of the image in the cloud."),
      Setting("config-drive", Schema::Bool(), "Give nodes a config drive; false leaves it to the cloud.")
          .Default(false),
  });
  return schema.With(ConnectionTypeSettings());
}

Schema CloudImageSchema() {
  Schema schema = Schema::Map({
      Setting("name", Schema::String(),
              "What labels call the image, and its name or id in the cloud by default.")
          .Required(),
      Setting("image-id", Schema::String(), "Its id in the cloud; used without looking it up."),
      Setting("image-name", Schema::String(), "Its name or id in the cloud."),
      Setting("config-drive", Schema::Bool(), "Give nodes a config drive; false leaves it to the cloud.")
          .Default(false),
      Setting("username", Schema::String(), "User for logging in."),
      Setting("python-path", Schema::String(), "Python interpreter on the node.").Default("auto"),
      Setting("shell-type", Schema::String(), "Shell of the user, as Ansible names it."),
  });
  return schema.With(ConnectionTypeSettings()).Exclusive({"image-id", "image-name"});
}

Schema LabelSchema() {
  return Schema::Map(
             {
                 Setting("name", Schema::String(), "One of the top-level labels.").Required(),
                 Setting("diskimage", Schema::String(), "Boot an image of the builder."),
                 Setting("cloud-image", Schema::String(), "Boot one of the provider's cloud-images."),
                 Setting("min-ram", Schema::Int(), "The smallest flavor with at least this memory is used.")
                     .Default(0)
                     .Unit("MiB"),
                 Setting("flavor-name", Schema::String(), "Flavor; with min-ram a part of its name."),
                 Setting("key-name", Schema::String(), "Key pair of the cloud to put on the node."),
                 Setting("console-log", Schema::Bool(), "Log the console of nodes that fail to start.")
                     .Default(false),
                 Setting("boot-from-volume", Schema::Bool(), "Boot from a new volume.").Default(false),
                 Setting("volume-size", Schema::Int(), "Size of that volume.").Default(50).Unit("GB"),
                 Setting("instance-properties", Schema::OpenMap(Schema::Any()), "Metadata of the server."),
                 Setting("dynamic-instance-properties", Schema::OpenMap(Schema::Any()),
                         "Metadata that is made from the node request."),
                 Setting("userdata", Schema::String(), "User data for cloud-init.").Secret(),
                 Setting("networks", Texts(), "Networks instead of the pool's."),
                 Setting("host-key-checking", Schema::Bool(),
                         "Whether to scan host keys; default the pool's."),
             })
      .Exclusive({"diskimage", "cloud-image"})
      .RequireOneOf({"min-ram", "flavor-name"})
      .RequireOneOf({"diskimage", "cloud-image"});
}

Schema PoolSchema() {
  Schema schema = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool.").Required(),
      Setting("max-cores", Schema::Int(), "Virtual CPUs of the pool's nodes."),
      Setting("max-ram", Schema::Int(), "Memory of the pool's nodes.").Unit("MiB"),
      Setting("max-volumes", Schema::Int(), "Volumes of the pool's nodes."),
      Setting("max-volume-gb", Schema::Int(), "Volume space of the pool's nodes.").Unit("GB"),
      Setting(
          "ignore-provider-quota", Schema::Bool(),
          "Only the pool's own limits count. Once the cloud refuses, its places go in turn for five minutes.")
          .Default(false),
      Setting("availability-zones", Texts(), "Zones to use; default: all of the cloud."),
      Setting("networks", Texts(), "Networks by name or id, in this order."),
      Setting("security-groups", Texts(), "Security groups by name or id."),
      Setting("auto-floating-ip", Schema::Bool(), "Give nodes a floating address when they need one.")
          .Default(true),
      Setting("host-key-checking", Schema::Bool(), "Whether to scan host keys.").Default(true),
      Setting("labels", Schema::List(LabelSchema()), "The labels offered here."),
  });
  return schema.With(PoolSettings());
}

Schema MakeSchema() {
  constexpr const char* kInPool = "since version 3 it stands under pools[]";
  constexpr const char* kCloudsYaml = "connection settings stand in clouds.yaml since version 3; see cloud";
  return Schema::Map({
      Setting("cloud", Schema::String(), "Name of the cloud in clouds.yaml.").RequiredByValidator(),
      Setting("region-name", Schema::String(), "Region of the cloud."),
      Setting("rate", Schema::Number(), "Pause between calls that change something; default: none.")
          .Unit("seconds"),
      Setting("boot-timeout", Schema::Int(), "Time for the host key scan of a new node.")
          .Default(60)
          .Unit("seconds"),
      Setting("launch-timeout", Schema::Int(), "Time for one attempt to create a node.")
          .Default(3600)
          .Unit("seconds"),
      Setting("launch-retries", Schema::Int(), "Attempts in total.").Default(3),
      Setting("image-upload-timeout", Schema::Int(), "Time for an upload.").Default(3600).Unit("seconds"),
      Setting("image-name-format", Schema::String(),
              "Names of uploads; {image_name}, {upload_id} and {timestamp}.")
          .Default("{image_name}-{timestamp}"),
      Setting("post-upload-hook", Schema::String(), "Program that the builder runs after an upload."),
      Setting("clean-floating-ips", Schema::Bool(), "Remove floating addresses that nothing uses.")
          .Default(false),
      Setting("port-cleanup-interval", Schema::Int(), "How often to remove ports that are down; 0: never.")
          .Default(600)
          .Unit("seconds"),
      Setting("max-leaked-share", Schema::Int().Between(0, 100),
              "Uploaded images without a record that one look may delete; if more have leaked, none is. "
              "100: no limit, 0: never.")
          .Default(50)
          .Unit("percent"),
      Setting("delete-legacy-leaked", Schema::Bool(),
              "Remove leaked servers also when only metadata in the form of 2015 tells that they are ours.")
          .Default(false),
      Setting("nodepool-id", Schema::String(), "Without effect."),
      Setting("diskimages", Schema::List(DiskImageSchema()), "Images of the builder to upload here."),
      Setting("cloud-images", Schema::List(CloudImageSchema()), "Images that exist in the cloud."),
      Setting("pools", Schema::List(PoolSchema()), "Groups of nodes."),
      Setting("hostname-format", Schema::Any(), "").Removed("hosts are named after their node id; remove it"),
      Setting("images", Schema::Any(), "").Removed("use diskimages or cloud-images"),
      Setting("max-servers", Schema::Any(), "").Removed(kInPool),
      Setting("networks", Schema::Any(), "").Removed(kInPool),
      Setting("availability-zones", Schema::Any(), "").Removed(kInPool),
      Setting("security-groups", Schema::Any(), "").Removed(kInPool),
      Setting("keypair", Schema::Any(), "").Removed("use pools[].labels[].key-name"),
      Setting("template-hostname", Schema::Any(), "").Removed("use image-name-format"),
      Setting("ipv6-preferred", Schema::Any(), "").Removed("set force_ipv4 or networks in clouds.yaml"),
      Setting("api-timeout", Schema::Any(), "").Removed("set api_timeout in clouds.yaml"),
      Setting("image-type", Schema::Any(), "").Removed("set image_format in clouds.yaml"),
      Setting("username", Schema::Any(), "").Removed(kCloudsYaml),
      Setting("password", Schema::Any(), "").Removed(kCloudsYaml).Secret(),
      Setting("auth-url", Schema::Any(), "").Removed(kCloudsYaml),
      Setting("project-id", Schema::Any(), "").Removed(kCloudsYaml),
      Setting("project-name", Schema::Any(), "").Removed(kCloudsYaml),
      Setting("service-type", Schema::Any(), "").Removed(kCloudsYaml),
      Setting("service-name", Schema::Any(), "").Removed(kCloudsYaml),
  });
}

std::shared_ptr<const OpenstackDiskImage> ReadDiskImage(const Section& section,
                                                        const std::string& image_format,
                                                        config::Config& config, std::string& fingerprint) {
  auto image = std::make_shared<OpenstackDiskImage>();
  image->name = ImageName(section.Text("name"));
  auto global = config.diskimages.find(image->name);
  if (global == config.diskimages.end()) {
    throw section.Fail("name", fmt::format("'{}' is not one of the top-level diskimages, or an abstract one",
                                           Excerpt(image->name.value)));
  }
  std::vector<std::string>& formats = global->second.formats;
  auto place = std::ranges::lower_bound(formats, image_format);
  if (place == formats.end() || *place != image_format) formats.insert(place, image_format);
  image->is_paused = section.Bool("pause");
  image->meta = ReadObject(section, "meta");
  image->config_drive = section.Bool("config-drive");
  ReadConnectionType(section, image->connection);
  image->connection.username = global->second.username;
  image->connection.python_path = global->second.python_path;
  image->connection.shell_type = global->second.shell_type;
  fingerprint += "\n" + config::Fingerprint(global->second);
  return image;
}

OpenstackCloudImage ReadCloudImage(const Section& section) {
  OpenstackCloudImage image;
  image.name = section.Text("name");
  image.external_name = image.name;
  if (std::optional<std::string> id = section.OptionalText("image-id")) {
    image.external_name = *id;
    image.is_id = true;
  } else if (std::optional<std::string> name = section.OptionalText("image-name")) {
    image.external_name = *name;
  }
  image.config_drive = section.Bool("config-drive");
  ReadConnectionType(section, image.connection);
  image.connection.username = section.OptionalText("username");
  image.connection.python_path = section.Text("python-path");
  image.connection.shell_type = section.OptionalText("shell-type");
  return image;
}

// The image of a label decides how to log in to its nodes.
void ReadLabelImage(const Section& section, const config::Config& config, OpenstackConfig& provider,
                    OpenstackLabel& label) {
  if (std::optional<std::string> name = section.OptionalText("diskimage")) {
    label.diskimage = ImageName(*name);
    auto global = config.diskimages.find(*label.diskimage);
    if (global == config.diskimages.end()) {
      throw section.Fail(
          "diskimage",
          fmt::format("'{}' is not one of the top-level diskimages, or an abstract one", Excerpt(*name)));
    }
    if (const OpenstackDiskImage* own = provider.FindDiskImage(*label.diskimage)) {
      label.connection = own->connection;
      return;
    }
    // Not uploaded here: its nodes cannot start before the provider lists it.
    label.connection.username = global->second.username;
    label.connection.python_path = global->second.python_path;
    label.connection.shell_type = global->second.shell_type;
    provider.fingerprint += "\n" + config::Fingerprint(global->second);
  } else if (std::optional<std::string> cloud_image = section.OptionalText("cloud-image")) {
    auto found = provider.cloud_images.find(*cloud_image);
    if (found == provider.cloud_images.end()) {
      throw section.Fail("cloud-image",
                         fmt::format("'{}' of label {} is not one of the cloud-images of provider {}",
                                     Excerpt(*cloud_image), label.name, provider.name));
    }
    label.cloud_image = cloud_image;
    label.connection = found->second.connection;
  } else {
    throw section.Fail("diskimage", "a label needs diskimage or cloud-image");
  }
}

std::shared_ptr<const OpenstackLabel> ReadLabel(const Section& section, const OpenstackPool& pool,
                                                bool host_key_checking, const config::Config& config,
                                                OpenstackConfig& provider) {
  auto label = std::make_shared<OpenstackLabel>();
  label->name = ReadLabelName(section, "name", config);
  ReadLabelImage(section, config, provider, *label);
  label->host_key_checking = section.OptionalBool("host-key-checking").value_or(host_key_checking);
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
  ReadPool(section, provider_section, *pool);
  for (const char* resource : {"cores", "ram", "volumes", "volume-gb"}) {
    std::optional<double> limit = section.OptionalFloat(fmt::format("max-{}", resource));
    if (limit) pool->limits[resource] = *limit;
  }
  pool->ignore_provider_quota = section.Bool("ignore-provider-quota");
  pool->availability_zones = section.TextList("availability-zones");
  pool->networks = section.TextList("networks");
  pool->security_groups = section.TextList("security-groups");
  pool->auto_floating_ip = section.Bool("auto-floating-ip");
  bool host_key_checking = section.Bool("host-key-checking");
  for (const Section& label_section : section.Sections("labels")) {
    std::shared_ptr<const OpenstackLabel> label =
        ReadLabel(label_section, *pool, host_key_checking, config, provider);
    pool->labels[label->name] = label;
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

void ReadOpenstackConfig(const config::ProviderSection& section, const Schema& schema,
                         const std::string& image_format, config::Config& config, OpenstackConfig& result) {
  Section provider = OpenProvider(section, schema);
  ReadProvider(section, provider, result);
  result.manages_images = true;
  result.image_format = image_format;
  result.cloud = provider.OptionalText("cloud");
  result.region_name = provider.OptionalText("region-name");
  result.rate = provider.OptionalFloat("rate");
  result.boot_timeout = provider.Seconds("boot-timeout");
  result.launch_timeout = provider.Seconds("launch-timeout");
  result.launch_retries = ReadCount(provider, "launch-retries");
  result.image_upload_timeout = provider.Seconds("image-upload-timeout");
  result.image_name_format = provider.Text("image-name-format");
  result.post_upload_hook = provider.OptionalText("post-upload-hook");
  result.clean_floating_ips = provider.Bool("clean-floating-ips");
  result.port_cleanup_interval = provider.Seconds("port-cleanup-interval");
  result.max_leaked_share = ReadCount(provider, "max-leaked-share");
  if (result.max_leaked_share < 0 || result.max_leaked_share > 100) {
    throw provider.Fail("max-leaked-share", "expected a percentage from 0 to 100");
  }
  result.deletes_legacy_leaked = provider.Bool("delete-legacy-leaked");
  for (const Section& entry : provider.Sections("diskimages")) {
    std::shared_ptr<const OpenstackDiskImage> image =
        ReadDiskImage(entry, image_format, config, result.fingerprint);
    result.diskimages[image->name] = image;
  }
  for (const Section& entry : provider.Sections("cloud-images")) {
    OpenstackCloudImage image = ReadCloudImage(entry);
    result.cloud_images[image.name] = std::move(image);
  }
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<const OpenstackPool> pool = ReadOpenstackPool(entry, provider, config, result);
    result.pools[pool->name] = pool;
  }
}

}  // namespace nodepool::drivers
