#include "driver/cloud/section.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/disk_images.h"
#include "driver/provider_section.h"

namespace nodepool::driver::cloud {

using config::Schema;
using config::Section;
using config::Setting;

namespace {

// One of the top-level diskimages; the result is const if `Config` is.
template <class Config>
auto& GlobalImage(const Section& section, std::string_view key, Config& config) {
  std::string name = section.Text(key);
  auto global = config.diskimages.find(ImageName(name));
  if (global != config.diskimages.end()) return global->second;
  throw section.Fail(
      key, fmt::format("'{}' is not one of the top-level diskimages, or an abstract one", Excerpt(name)));
}

void SetLogin(const config::DiskImage& image, ConnectionSettings& connection) {
  connection.username = image.username;
  connection.python_path = image.python_path;
  connection.shell_type = image.shell_type;
}

}  // namespace

Setting BootTimeout(int usual) {
  return Setting("boot-timeout", Schema::Int(), "Time for the host key scan of a new node.")
      .Default(usual)
      .Unit("seconds");
}

Setting LaunchTimeout(int usual, std::string help) {
  return Setting("launch-timeout", Schema::Int(), std::move(help)).Default(usual).Unit("seconds");
}

Setting LaunchRetries() { return Setting("launch-retries", Schema::Int(), "Attempts in total.").Default(3); }

void ReadLaunchSettings(const Section& provider, ProviderConfig& result) {
  result.boot_timeout = provider.Seconds("boot-timeout");
  result.launch_timeout = provider.Seconds("launch-timeout");
  result.launch_retries = ReadCount(provider, "launch-retries");
}

std::vector<Setting> UploadSettings(int usual_timeout) {
  return {
      Setting("image-upload-timeout", Schema::Int(), "Time for an upload.")
          .Default(usual_timeout)
          .Unit("seconds"),
      Setting("image-name-format", Schema::String(),
              "Names of uploads; {image_name}, {upload_id} and {timestamp}.")
          .Default("{image_name}-{timestamp}"),
      Setting("post-upload-hook", Schema::String(), "Program that the builder runs after an upload."),
      Setting("max-leaked-share", Schema::Int().Between(0, 100),
              "Uploaded images without a record that one sweep may delete; if more have leaked, none is. "
              "100: no limit, 0: never.")
          .Default(50)
          .Unit("percent"),
  };
}

void ReadUploadSettings(const Section& provider, ProviderConfig& result) {
  result.image_upload_timeout = provider.Seconds("image-upload-timeout");
  result.image_name_format = provider.Text("image-name-format");
  result.post_upload_hook = provider.OptionalText("post-upload-hook");
  result.max_leaked_share = ReadCount(provider, "max-leaked-share");
}

Schema DiskImageSchema() {
  Schema schema = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level diskimages.").Required(),
      Setting("pause", Schema::Bool(), "Do not upload the image here.").Default(false),
      Setting("meta", Schema::OpenMap(Schema::Any()), "Properties of the image in the cloud."),
  });
  return schema.With(ConnectionTypeSettings());
}

const config::DiskImage& ReadDiskImageName(const Section& section, config::Config& config,
                                           ProviderConfig& provider, ProviderDiskImage& result) {
  result.name = ImageName(section.Text("name"));
  config::DiskImage& global = GlobalImage(section, "name", config);
  auto place = std::ranges::lower_bound(global.formats, provider.image_format);
  bool is_new = place == global.formats.end() || *place != provider.image_format;
  if (is_new && !provider.image_format.empty()) global.formats.insert(place, provider.image_format);
  result.is_paused = section.Bool("pause");
  provider.fingerprint += "\n" + config::Fingerprint(global);
  return global;
}

void ReadDiskImage(const Section& section, config::Config& config, ProviderConfig& provider,
                   ProviderDiskImage& result) {
  const config::DiskImage& global = ReadDiskImageName(section, config, provider, result);
  result.meta = ReadObject(section, "meta");
  ReadConnectionType(section, result.connection);
  SetLogin(global, result.connection);
}

Schema CloudImageSchema() {
  Schema schema = Schema::Map({
      Setting("name", Schema::String(),
              "What labels call the image, and its name or id in the cloud by default.")
          .Required(),
      Setting("image-id", Schema::String(), "Its id in the cloud; used without looking it up."),
      Setting("image-name", Schema::String(), "Its name or id in the cloud."),
      Setting("username", Schema::String(), "User for logging in."),
      Setting("python-path", Schema::String(), "Python interpreter on the node.").Default("auto"),
      Setting("shell-type", Schema::String(), "Shell of the user, as Ansible names it."),
  });
  return schema.With(ConnectionTypeSettings()).Exclusive({"image-id", "image-name"});
}

void ReadCloudImage(const Section& section, CloudImage& result) {
  result.name = section.Text("name");
  result.external_name = result.name;
  if (std::optional<std::string> id = section.OptionalText("image-id")) {
    result.external_name = *id;
    result.is_id = true;
  } else if (std::optional<std::string> name = section.OptionalText("image-name")) {
    result.external_name = *name;
  }
  ReadConnectionType(section, result.connection);
  result.connection.username = section.OptionalText("username");
  result.connection.python_path = section.Text("python-path");
  result.connection.shell_type = section.OptionalText("shell-type");
}

Schema PoolSchema(Schema label) {
  Schema schema = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool.").Required(),
      Setting("max-cores", Schema::Int(), "Virtual CPUs of the pool's nodes."),
      Setting("max-ram", Schema::Int(), "Memory of the pool's nodes.").Unit("MiB"),
      Setting("max-volumes", Schema::Int(), "Volumes of the pool's nodes."),
      Setting("max-volume-gb", Schema::Int(), "Volume space of the pool's nodes.").Unit("GB"),
      Setting("ignore-provider-quota", Schema::Bool(),
              "Only the pool's own limits count. Once the cloud refuses, its capacity is handed out in order "
              "for five minutes.")
          .Default(false),
      Setting("availability-zones", Schema::List(Schema::String()),
              "Zones to use; default: all of the cloud."),
      Setting("host-key-checking", Schema::Bool(), "Whether to scan host keys.").Default(true),
      Setting("labels", Schema::List(std::move(label)), "The labels offered here."),
  });
  return schema.With(PoolSettings());
}

void ReadCloudPool(const Section& section, const Section& provider, PoolConfig& result) {
  ReadPool(section, provider, result);
  for (const char* resource : {"cores", "ram", "volumes", "volume-gb"}) {
    std::optional<double> limit = section.OptionalFloat(fmt::format("max-{}", resource));
    if (limit) result.limits[resource] = *limit;
  }
  result.ignore_provider_quota = section.Bool("ignore-provider-quota");
  result.availability_zones = section.TextList("availability-zones");
}

Schema LabelSchema() {
  Schema schema = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level labels.").Required(),
      Setting("diskimage", Schema::String(), "Boot an image of the builder."),
      Setting("cloud-image", Schema::String(), "Boot one of the provider's cloud-images."),
      Setting("host-key-checking", Schema::Bool(), "Whether to scan host keys; default the pool's."),
  });
  return schema.Exclusive({"diskimage", "cloud-image"});
}

void ReadLabelImage(const Section& section, const config::Config& config, const FindCloudImage& find,
                    ProviderConfig& provider, LabelConfig& label) {
  if (std::optional<std::string> name = section.OptionalText("diskimage")) {
    label.diskimage = ImageName(*name);
    const config::DiskImage& global = GlobalImage(section, "diskimage", config);
    auto own = provider.diskimages.find(*label.diskimage);
    if (own != provider.diskimages.end()) {
      label.connection = own->second->connection;
      return;
    }
    // Not uploaded to this provider: nodes cannot be launched until the provider lists it.
    SetLogin(global, label.connection);
    provider.fingerprint += "\n" + config::Fingerprint(global);
  } else if (std::optional<std::string> cloud_image = section.OptionalText("cloud-image")) {
    const CloudImage* image = find(*cloud_image);
    if (image == nullptr) {
      throw section.Fail("cloud-image",
                         fmt::format("'{}' of label {} is not one of the cloud-images of provider {}",
                                     Excerpt(*cloud_image), label.name, provider.name));
    }
    label.cloud_image = cloud_image;
    label.connection = image->connection;
  } else {
    throw section.Fail("diskimage", "a label needs diskimage or cloud-image");
  }
}

void ReadLabel(const Section& section, const Section& pool, const config::Config& config,
               const FindCloudImage& find, ProviderConfig& provider, LabelConfig& result) {
  result.name = ReadLabelName(section, "name", config);
  ReadLabelImage(section, config, find, provider, result);
  result.host_key_checking =
      section.OptionalBool("host-key-checking").value_or(pool.Bool("host-key-checking"));
}

std::vector<Setting> SettingsOfVersion2() {
  auto removed = [](const char* key, const char* instead) {
    return Setting(key, Schema::Any(), "").Removed(instead);
  };
  constexpr const char* kInPool = "since version 3 it belongs under pools[]";
  constexpr const char* kCloudsYaml = "connection settings stand in clouds.yaml since version 3; see cloud";
  return {
      removed("hostname-format", "hosts are named after their node id; remove it"),
      removed("images", "use diskimages or cloud-images"),
      removed("max-servers", kInPool),
      removed("networks", kInPool),
      removed("availability-zones", kInPool),
      removed("security-groups", kInPool),
      removed("keypair", "use pools[].labels[].key-name"),
      removed("template-hostname", "use image-name-format"),
      removed("ipv6-preferred", "set force_ipv4 or networks in clouds.yaml"),
      removed("api-timeout", "set api_timeout in clouds.yaml"),
      removed("image-type", "set image_format in clouds.yaml"),
      removed("username", kCloudsYaml),
      removed("password", kCloudsYaml).Secret(),
      removed("auth-url", kCloudsYaml),
      removed("project-id", kCloudsYaml),
      removed("project-name", kCloudsYaml),
      removed("service-type", kCloudsYaml),
      removed("service-name", kCloudsYaml),
  };
}

}  // namespace nodepool::driver::cloud
