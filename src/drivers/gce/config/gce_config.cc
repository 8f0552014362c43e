#include "drivers/gce/config/gce_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "driver/provider_section.h"

namespace nodepool::drivers::gce {

namespace cloud = driver::cloud;

namespace {

// Node id, pool and provider, and what tells one launch from another.
constexpr std::size_t kOwnLabels = 4;
// Of what becomes part of URLs.
constexpr cloud::NameRule kPlaceRule{.marks = "-:.", .most = std::string_view::npos};

void CheckName(const Section& provider, const char* key, const std::string& name) {
  if (!kPlaceRule.Permits(name))
    throw provider.Fail(key, fmt::format("{} is no name of a {} of Google", Excerpt(name), key));
}

void CheckPlaces(const Section& provider, GceConfig& result, config::Config& config) {
  CheckName(provider, "project", result.project);
  CheckName(provider, "region", result.region);
  CheckName(provider, "zone", result.zone);
  if (result.zones.empty()) result.zones = {result.zone};
  std::vector<std::string> all = result.zones;
  all.push_back(result.zone);
  for (const std::string& zone : all) {
    if (!kResourceRule.Permits(zone))
      throw provider.Fail("zones", fmt::format("{} is no zone", Excerpt(zone)));
    if (zone.starts_with(result.region + "-")) continue;
    Warn(config, provider, zone == result.zone ? "zone" : "zones",
         fmt::format("zone {} is not in region {}: Google will refuse nodes there", zone, result.region));
  }
}

void DecideRate(const Section& provider, GceConfig& result, config::Config& config) {
  result.rate = std::max(0.0, result.rate);
  bool is_used = result.rate_limit.value_or(0) > 1 && !provider.Has("rate");
  if (is_used) result.rate = *result.rate_limit;
  if (result.rate_limit && !is_used)
    Warn(config, provider, "rate-limit", "it has no effect; set rate, in calls per second");
}

void CheckCloudImage(const Section& section, GceCloudImage& image, config::Config& config) {
  if (image.name.empty()) throw section.Fail("name", "an entry of cloud-images needs a name");
  image.is_id = !image.external_name.empty();
  if (!image.key.empty() && !image.connection.username)
    throw section.Fail("key", "the key needs a username, to whom it belongs");
  bool is_found = image.is_id || (!image.project.empty() && !image.family.empty());
  if (is_found) return;
  Warn(config, section, "image-family",
       fmt::format("cloud image {} needs image-id, or image-project and image-family: no node can be "
                   "launched from it",
                   Excerpt(image.name)));
}

void CheckLabels(const Section& section, const GceLabel& label) {
  for (const auto& [key, value] : label.labels) {
    if (!kLabelKeyRule.Permits(key) || key.starts_with("nodepool_")) {
      throw section.Fail("labels", fmt::format("Google permits no label {}: a small letter, then up to 62 "
                                               "small letters, digits, _ and -; not nodepool_…",
                                               Excerpt(key)));
    }
    if (!kLabelValueRule.Permits(value)) {
      throw section.Fail("labels", fmt::format("Google permits no value {} of label {}: up to 63 small "
                                               "letters, digits, _ and -",
                                               Excerpt(value), key));
    }
  }
  if (label.labels.size() + kOwnLabels > kMostLabels) {
    throw section.Fail("labels", fmt::format("more than the {} labels that Google permits, {} of which are "
                                             "Nodepool's",
                                             kMostLabels, kOwnLabels));
  }
}

void CheckLabel(const Section& section, const GceLabel& label, config::Config& config) {
  if (label.instance_types.empty()) throw section.Fail("instance-type", "a label needs a machine type");
  if (label.volume_type == "standard") {
    Warn(config, section, "volume-type",
         "Google has no disk type standard; pd-standard is probably meant, and nodes will be refused");
  }
  if (label.spot_notice != 0 && label.spot_notice != 120)
    throw section.Fail("spot-notice", "Google gives a notice of 120 seconds, or none (0)");
  if (label.spot_notice != 0 && !label.use_spot)
    Warn(config, section, "spot-notice", "it has no effect without use-spot");
  CheckLabels(section, label);
}

std::shared_ptr<const GcePool> ReadGcePool(const Section& section, GceConfig& provider,
                                           config::Config& config) {
  std::shared_ptr<GcePool> pool = ReadPool(section, GcePoolSettings(), provider);
  if (provider.pools.contains(pool->name))
    throw section.Fail("name", fmt::format("there are two pools {} in this provider", pool->name));
  if (pool->service_account && pool->service_account->scopes.empty())
    pool->service_account->scopes = {"https://www.googleapis.com/auth/cloud-platform"};
  for (const Section& entry : section.Sections("labels")) {
    auto label = cloud::ReadLabel(entry, GceLabelSettings(), *pool, provider.cloud_images, config, provider);
    CheckLabel(entry, *label, config);
    pool->Offer(std::move(label));
  }
  return pool;
}

}  // namespace

std::map<std::string, std::string> FittingLabels(const std::map<std::string, std::string>& metadata) {
  std::map<std::string, std::string> labels;
  for (const auto& [key, value] : metadata) {
    if (kLabelKeyRule.Permits(key) && kLabelValueRule.Permits(value)) labels[key] = value;
  }
  return labels;
}

std::shared_ptr<const GceConfig> LoadGceConfig(const config::ProviderSection& section,
                                               config::Config& config) {
  auto result = std::make_shared<GceConfig>();
  Section provider = ReadProvider(section, GceSettings(), *result);
  CheckPlaces(provider, *result, config);
  DecideRate(provider, *result, config);
  result->cloud_images = cloud::ReadCloudImages(
      provider, GceCloudImageSettings(),
      [&config](const Section& entry, GceCloudImage& image) { CheckCloudImage(entry, image, config); });
  cloud::ReadDiskImages(provider, GceDiskImageSettings(), config, *result);
  result->manages_images = result->bucket && !result->diskimages.empty();
  if (!result->bucket && !result->diskimages.empty())
    Warn(config, provider, "diskimages",
         "they need object-storage with bucket-name: nothing can be uploaded");
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<const GcePool> pool = ReadGcePool(entry, *result, config);
    result->pools[pool->name] = pool;
  }
  return result;
}

const Bindings<GceCloudImage>& GceCloudImageSettings() {
  static const Bindings<GceCloudImage> settings =
      Bindings<GceCloudImage>{
          {Setting("name", "What labels call the image."), &GceCloudImage::name},
          {Setting("image-id", "Its URL, or projects/PROJECT/global/images/NAME; used in place of a family."),
           &GceCloudImage::external_name},
          {Setting("image-project", "Project that publishes the image."), &GceCloudImage::project},
          {Setting("image-family", "Family of which the newest image is used."), &GceCloudImage::family},
          {Setting("key", "Public SSH key to put on the node for the user."), &GceCloudImage::key},
      }
          .With(&GceCloudImage::connection, LoginSettings());
  return settings;
}

const Bindings<GceDiskImage>& GceDiskImageSettings() {
  static const Bindings<GceDiskImage> settings =
      Bindings<GceDiskImage>(cloud::DiskImageSettings())
          .With({
              {Setting("architecture", Schema::Among({"X86_64", "ARM64"}), "Architecture of the image."),
               &GceDiskImage::architecture},
              {Setting("guest-os-features", "What the image's system can do, as Google names it."),
               &GceDiskImage::guest_features},
          });
  return settings;
}

const Bindings<GceLabel>& GceLabelSettings() {
  static const Bindings<GceLabel> settings =
      Bindings<GceLabel>(cloud::LabelImageSettings())
          .With({
              {Setting("instance-types",
                       "Machine types, the preferred one first: a launch tries the next where Google lacks "
                       "capacity."),
               &GceLabel::instance_types},
              {Setting("instance-type", Schema::String(), "Machine type."),
               [](const Section& section, const std::string& key, GceLabel& label) {
                 if (section.IsGiven(key)) label.instance_types.push_back(section.Text(key));
               }},
              {Setting("volume-type", "Disk type of the boot disk."), &GceLabel::volume_type},
              {Setting("volume-size", "Size of the boot disk.").Unit("GB"), &GceLabel::volume_size},
              {Setting("use-spot", "Spare capacity, which Google may take away."), &GceLabel::use_spot},
              {Setting("spot-notice", "Notice before it is taken away: 0 or 120.").Unit("seconds"),
               &GceLabel::spot_notice},
              {Setting("labels", "Labels of the instance in the cloud."), &GceLabel::labels},
          })
          .RequireOneOf({"cloud-image", "diskimage"})
          .RequireOneOf({"instance-type", "instance-types"})
          .Exclusive({"instance-type", "instance-types"});
  return settings;
}

const Bindings<GcePool>& GcePoolSettings() {
  static const Bindings<ServiceAccount> account = {
      {Setting("email", "Name of the account.").Required(), &ServiceAccount::email},
      {Setting("scopes", "What its tokens permit; default: all it may do.").Inherited(),
       &ServiceAccount::scopes},
  };
  static const Bindings<GcePool> settings =
      Bindings<GcePool>(PoolSettings())
          .With({
              Setting("labels", Schema::List(GceLabelSettings().ToSchema()), "The labels offered here.")
                  .Required(),
              {Setting("use-internal-ip", "Reach nodes at their private address."),
               &GcePool::use_internal_ip},
              {Setting("host-key-checking", "Whether to scan host keys.").DaemonOnly(),
               &GcePool::host_key_checking},
              cloud::RecheckInterval(),
              cloud::Recheck(),
              {Setting("network", "Network of the nodes; default: the network `default`."),
               &GcePool::network},
              {Setting("subnetwork", "Subnetwork of the provider's region."), &GcePool::subnetwork},
              {Setting("public-ipv4", "A public IPv4 address for each node."), &GcePool::public_ipv4},
              {Setting("public-ipv6", "A public IPv6 address for each node."), &GcePool::public_ipv6},
              {Setting("tags", "Network tags, which rules of firewalls name."), &GcePool::tags},
              {Setting("service-account", "Identity of the nodes; default: none."), &GcePool::service_account,
               account},
          });
  return settings;
}

const Bindings<GceConfig>& GceSettings() {
  static const Bindings<GceConfig> storage = {
      {Setting("bucket-name", "Name of the bucket.").Required(), &GceConfig::bucket}};
  static const Bindings<GceConfig> settings =
      Bindings<GceConfig>{
          {Setting("project", "Project in the cloud.").Required(), &GceConfig::project},
          {Setting("region", "Region of the cloud.").Required(), &GceConfig::region},
          {Setting("zone", "Zone of the region.").Required(), &GceConfig::zone},
          {Setting("zones",
                   "Zones of the region, the preferred one first: a launch tries the next where Google lacks "
                   "capacity. Default: `zone`."),
           &GceConfig::zones},
          cloud::BootTimeout(),
          cloud::LaunchTimeout(),
          cloud::LaunchRetries(),
          {Setting("rate", "Calls that change something; 0: no limit.").Unit("per second").DaemonOnly(),
           &GceConfig::rate},
          {Setting("rate-limit", "The same, if rate is absent and this is more than 1."),
           &GceConfig::rate_limit},
          {Setting("credentials-file", "Credentials; default: those of the environment."),
           &GceConfig::credentials_file},
          Setting("cloud-images", Schema::List(GceCloudImageSettings().ToSchema()),
                  "Images that exist in the cloud."),
          Setting("diskimages", Schema::List(GceDiskImageSettings().ToSchema()),
                  "Images of the builder to upload here."),
          {Setting("object-storage", "Where files of images are put for the import."), storage},
          {Setting("image-import-timeout", "Time for an import; default: an hour."),
           &GceConfig::import_timeout},
          Setting("pools", Schema::List(GcePoolSettings().ToSchema()), "Groups of nodes.").Required(),
      }
          .With(cloud::UploadSettings());
  return settings;
}

const Schema& GceSchema() {
  static const Schema schema = GceSettings().ToSchema();
  return schema;
}

}  // namespace nodepool::drivers::gce
