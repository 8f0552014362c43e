#include "driver/provider_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/disk_images.h"
#include "model/image.h"
#include "model/node.h"
#include "process/command.h"

namespace nodepool::driver {

using config::Binding;
using config::Bindings;
using config::Schema;
using config::Section;
using config::Setting;

namespace {

void ReadPoolName(const Section& section, const std::string& key, PoolConfig& pool) {
  pool.name = PoolName(section.Text(key));
  if (pool.name.empty()) throw section.Fail(key, "is required");
}

// After the type, on which its default depends.
void ReadPort(const Section& section, const std::string& key, ConnectionSettings& connection) {
  if (section.IsGiven(key)) {
    connection.connection_port = config::MemberType<int>::Read(section, key);
  } else if (connection.connection_type == "winrm") {
    connection.connection_port = 5986;
  }
}

}  // namespace

Bindings<PoolConfig> PoolSettings(std::string help_of_name) {
  return {
      {Setting("name", Schema::String(), std::move(help_of_name)).Required(), ReadPoolName},
      {Setting("max-servers", Schema::Int(), "Nodes of this pool at a time; 0 or less disables it.")
           .Unit("nodes"),
       &PoolConfig::max_servers},
      {Setting("node-attributes", Schema::OpenMap(Schema::Any()), "Stored with each node, for its client."),
       [](const Section& section, const std::string& key, PoolConfig& pool) {
         if (section.IsGiven(key)) pool.node_attributes = section.Object(key);
       }},
      {Setting("priority", "The pool with the lowest is asked first; default the provider's.").Inherited(),
       &PoolConfig::priority},
  };
}

Bindings<PoolConfig> OptionalPoolName() {
  return {{Setting("name", Schema::String(), "Name of the pool."), ReadPoolName}};
}

Binding<PoolConfig> Limit(Setting setting, std::string resource) {
  if (setting.schema.kind() == Schema::Kind::kAny) setting.schema = Schema::Int();
  return {std::move(setting),
          [resource = std::move(resource)](const Section& section, const std::string& key, PoolConfig& pool) {
            if (section.IsGiven(key)) pool.limits[resource] = section.Float(key);
          }};
}

void ReadAmounts(const Section& section, std::string_view key, Resources& amounts) {
  for (const auto& [name, text] : section.TextMap(key)) {
    std::optional<double> amount = config::LenientFloat(*section.Raw(key)->Find(name));
    if (!amount) throw section.Fail(key, fmt::format("{}: expected a number", Excerpt(name)));
    amounts[name] = *amount;
  }
}

Bindings<ConnectionSettings> ConnectionTypeSettings() {
  return {
      {Setting("connection-type", "How to connect to the node: ssh, winrm ..."),
       &ConnectionSettings::connection_type},
      {Setting("connection-port", Schema::Port(), "Port for it; 22, or 5986 for winrm."), ReadPort},
  };
}

Bindings<ConnectionSettings> LoginSettings() {
  Bindings<ConnectionSettings> settings = {
      {Setting("username", "User for logging in."), &ConnectionSettings::username},
      {Setting("python-path", "Python interpreter on the node."), &ConnectionSettings::python_path},
      {Setting("shell-type", "Shell of the user, as Ansible names it."), &ConnectionSettings::shell_type},
  };
  return settings.With(ConnectionTypeSettings());
}

Section OpenProvider(const config::ProviderSection& section, const Schema& schema) {
  return Section(section.source, config::WithCommonSettings(schema),
                 fmt::format("provider {}", section.name));
}

void ReadCommonSettings(const config::ProviderSection& source, const Section& provider,
                        ProviderConfig& result) {
  result.name = source.name;
  result.driver = source.driver;
  config::CommonSettings().Read(provider, result);
  result.fingerprint = fmt::format("{} {}", source.driver, config::CanonicalJson(source.source));
}

void CheckLabelName(const LabelName& name, const Section& section, std::string_view key,
                    const config::Config& config) {
  if (config.labels.contains(name) || IsValidationLabel(name)) return;
  std::vector<std::string> names;
  for (const auto& [label, settings] : config.labels) names.push_back(label.value);
  std::optional<std::string> nearest = NearestSpelling(name.value, names);
  throw section.Fail(key, fmt::format("label '{}' is not one of the top-level labels{}", Excerpt(name.value),
                                      nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
}

void Warn(config::Config& config, const Section& section, std::string_view key, std::string_view message) {
  config.warnings.push_back(section.Fail(key, message).In(config.path).message());
}

}  // namespace nodepool::driver

namespace nodepool::driver::cloud {

using config::Binding;
using config::Bindings;
using config::Schema;
using config::Section;
using config::Setting;

bool NameRule::Permits(std::string_view text) const {
  auto is_letter = [this](char c) {
    return (c >= 'a' && c <= 'z') || (may_have_capitals && c >= 'A' && c <= 'Z');
  };
  auto is_mark = [this](char c) { return marks.find(c) != std::string_view::npos; };
  if (text.size() < least || text.size() > most) return false;
  if (text.empty()) return true;
  if (begins_with_letter && !is_letter(text.front())) return false;
  if (!may_end_with_mark && is_mark(text.back())) return false;
  return std::ranges::all_of(text,
                             [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || is_mark(c); });
}

namespace {

// One of the top-level diskimages; the result is const if `Config` is.
template <class Config>
auto& GlobalImage(const Section& section, std::string_view key, const ImageName& name, Config& config) {
  auto global = config.diskimages.find(name);
  if (global != config.diskimages.end()) return global->second;
  throw section.Fail(key, fmt::format("'{}' is not one of the top-level diskimages, or an abstract one",
                                      Excerpt(name.value)));
}

// Of a command line; empty if it is none.
std::vector<std::string> WordsOf(const std::string& line) {
  try {
    return process::SplitWords(line);
  } catch (const Error&) {
    return {};
  }
}

void SetLogin(const config::DiskImage& image, ConnectionSettings& connection) {
  connection.username = image.username;
  connection.python_path = image.python_path;
  connection.shell_type = image.shell_type;
}

}  // namespace

Binding<ProviderConfig> BootTimeout() {
  return {Setting("boot-timeout", "Time for the host key scan of a new node."),
          &ProviderConfig::boot_timeout};
}

Binding<ProviderConfig> LaunchTimeout(std::string help) {
  return {Setting("launch-timeout", std::move(help)), &ProviderConfig::launch_timeout};
}

Binding<ProviderConfig> LaunchRetries() {
  return {Setting("launch-retries", "Attempts in total."), &ProviderConfig::launch_retries};
}

Binding<PoolConfig> RecheckInterval() {
  return {
      Setting("recheck-interval", Schema::Int().Between(10, 86400),
              "Ready nodes are checked again at this interval, and replaced if they do not answer or show "
              "other host keys; default: never."),
      &PoolConfig::recheck_interval};
}

Binding<PoolConfig> Recheck() {
  return {
      Setting("recheck", Schema::String(),
              "How ready nodes are checked again: tcp (the port accepts a connection), ssh (it shows one of "
              "the record's host keys), or a command, which runs on the launcher's host with "
              "NODEPOOL_HOST, NODEPOOL_PORT and others in its environment and has to end with 0; default: "
              "ssh where the record has host keys, else tcp."),
      [](const Section& section, const std::string& key, PoolConfig& pool) {
        if (!section.IsGiven(key)) return;
        pool.recheck = section.Text(key);
        if (WordsOf(pool.recheck).empty()) throw section.Fail(key, "expected tcp, ssh or a command");
      }};
}

Binding<PoolConfig> HostKeyChecking() {
  return {Setting("host-key-checking", "Whether to scan host keys."), &PoolConfig::host_key_checking};
}

Bindings<ProviderConfig> UploadSettings() {
  return {
      {Setting("image-upload-timeout", "Time for an upload."), &ProviderConfig::image_upload_timeout},
      {Setting("image-name-format", "Names of uploads; {image_name}, {upload_id} and {timestamp}."),
       &ProviderConfig::image_name_format},
      {Setting("post-upload-hook", "Program that the builder runs after an upload."),
       &ProviderConfig::post_upload_hook},
      {Setting("max-leaked-share", Schema::Int().Between(0, 100),
               "Uploaded images without a record that one sweep may delete; if more have leaked, none is. "
               "100: no limit, 0: never.")
           .Unit("percent"),
       &ProviderConfig::max_leaked_share},
  };
}

Bindings<ProviderDiskImage> DiskImageNameSettings() {
  return {
      {Setting("name", "One of the top-level diskimages.").Required(), &ProviderDiskImage::name},
      {Setting("pause", "Do not upload the image here."), &ProviderDiskImage::is_paused},
  };
}

Bindings<ProviderDiskImage> DiskImageSettings() {
  return DiskImageNameSettings()
      .With({{Setting("meta", "Properties of the image in the cloud."), &ProviderDiskImage::meta}})
      .With(&ProviderDiskImage::connection, ConnectionTypeSettings());
}

const config::DiskImage& UseDiskImage(const Section& section, const ProviderDiskImage& image,
                                      config::Config& config, ProviderConfig& provider) {
  config::DiskImage& global = GlobalImage(section, "name", image.name, config);
  auto place = std::ranges::lower_bound(global.formats, provider.image_format);
  bool is_new = place == global.formats.end() || *place != provider.image_format;
  if (is_new && !provider.image_format.empty()) global.formats.insert(place, provider.image_format);
  provider.fingerprint += "\n" + config::Fingerprint(global);
  return global;
}

void LogInAsDiskImage(const Section& section, ProviderDiskImage& image, config::Config& config,
                      ProviderConfig& provider) {
  SetLogin(UseDiskImage(section, image, config, provider), image.connection);
}

Bindings<CloudImage> CloudImageSettings() {
  Bindings<CloudImage> settings = {
      {Setting("name", Schema::String(),
               "What labels call the image, and its name or id in the cloud by default.")
           .Required(),
       [](const Section& section, const std::string& key, CloudImage& image) {
         image.name = section.Text(key);
         image.external_name = image.name;
       }},
      {Setting("image-name", "Its name or id in the cloud."), &CloudImage::external_name},
      {Setting("image-id", Schema::String(), "Its id in the cloud; used without looking it up."),
       [](const Section& section, const std::string& key, CloudImage& image) {
         image.is_id = section.IsGiven(key);
         if (image.is_id) image.external_name = section.Text(key);
       }},
  };
  return settings.With(&CloudImage::connection, LoginSettings()).Exclusive({"image-id", "image-name"});
}

Bindings<PoolConfig> CloudPoolSettings() {
  return PoolSettings().With({
      Limit({"max-cores", "Virtual CPUs of the pool's nodes."}, resource::kCores),
      Limit(Setting("max-ram", "Memory of the pool's nodes.").Unit("MiB"), resource::kRam),
      Limit({"max-volumes", "Volumes of the pool's nodes."}, resource::kVolumes),
      Limit(Setting("max-volume-gb", "Volume space of the pool's nodes.").Unit("GB"), resource::kVolumeGb),
      {Setting(
           "ignore-provider-quota",
           "Only the pool's own limits count. Once the cloud refuses, its capacity is handed out in order "
           "for five minutes."),
       &PoolConfig::ignore_provider_quota},
      {Setting("availability-zones", "Zones to use; default: all of the cloud."),
       &PoolConfig::availability_zones},
      HostKeyChecking(),
      RecheckInterval(),
      Recheck(),
  });
}

Bindings<LabelConfig> LabelImageSettings() {
  Bindings<LabelConfig> settings = {
      {Setting("name", "One of the top-level labels.").Required(), &LabelConfig::name},
      {Setting("diskimage", "Boot an image of the builder."), &LabelConfig::diskimage},
      {Setting("cloud-image", "Boot one of the provider's cloud-images."), &LabelConfig::cloud_image},
  };
  return settings.Exclusive({"diskimage", "cloud-image"});
}

Bindings<LabelConfig> LabelSettings() {
  return LabelImageSettings().With({
      {Setting("host-key-checking", "Whether to scan host keys; default the pool's.").Inherited(),
       &LabelConfig::host_key_checking},
  });
}

void ResolveImage(const Section& section, const config::Config& config, const FindCloudImage& find,
                  ProviderConfig& provider, LabelConfig& label) {
  if (label.diskimage) {
    label.cloud_image.reset();
    const config::DiskImage& global = GlobalImage(section, "diskimage", *label.diskimage, config);
    auto own = provider.diskimages.find(*label.diskimage);
    if (own != provider.diskimages.end()) {
      label.connection = own->second->connection;
      return;
    }
    // Not uploaded to this provider: nodes cannot be launched until the provider lists it.
    SetLogin(global, label.connection);
    provider.fingerprint += "\n" + config::Fingerprint(global);
  } else if (label.cloud_image) {
    const CloudImage* image = find(*label.cloud_image);
    if (image == nullptr) {
      throw section.Fail("cloud-image",
                         fmt::format("'{}' of label {} is not one of the cloud-images of provider {}",
                                     Excerpt(*label.cloud_image), label.name, provider.name));
    }
    label.connection = image->connection;
  } else {
    throw section.Fail("diskimage", "a label needs diskimage or cloud-image");
  }
}

Bindings<ProviderConfig> SettingsOfVersion2() {
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
