#include "drivers/gce/config/gce_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "driver/cloud/section.h"
#include "drivers/gce/config/gce_settings.h"

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

}  // namespace nodepool::drivers::gce
