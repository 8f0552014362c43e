#include "drivers/aws/config/aws_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/provider_section.h"
#include "drivers/aws/config/aws_settings.h"

namespace nodepool::drivers::aws {

namespace cloud = driver::cloud;
namespace {

// --- Images ---------------------------------------------------------------------

bool NamesPublisher(const std::vector<ImageFilter>& filters) {
  return std::ranges::any_of(filters, [](const ImageFilter& filter) {
    return filter.name == "owner-id" || filter.name == "owner-alias" || filter.name == "image-id";
  });
}

void CheckCloudImage(const Section& section, AwsCloudImage& image, config::Config& config) {
  image.is_id = !image.external_name.empty();
  if (image.is_id) image.filters.clear();
  if (image.is_id || NamesPublisher(image.filters)) return;
  Warn(config, section, "image-filters",
       fmt::format("any AWS account can publish an image that matches the filters of cloud image {}; add a "
                   "filter owner-id or owner-alias",
                   Excerpt(image.name)));
}

void WarnOfTags(const Section& section, std::string_view key, config::Config& config) {
  for (const std::string& warning : ReadTagSettings(section, key).warnings)
    Warn(config, section, key, warning);
}

void CheckImport(const Section& section, const AwsDiskImage& image, const AwsConfig& provider,
                 config::Config& config) {
  if (image.import_method == ImportMethod::kImage && image.wants_imdsv2)
    throw section.Fail("imds-support", "IMDSv2 requires the import method snapshot or ebs-direct");
  bool is_direct = image.import_method == ImportMethod::kEbsDirect;
  if (is_direct && provider.image_format != "raw")
    throw section.Fail("import-method", "ebs-direct needs the provider's image-format raw");
  if (is_direct || provider.bucket) return;
  auto word =
      std::ranges::find(ImportMethods(), image.import_method, [](const auto& each) { return each.second; });
  Warn(config, section, "import-method",
       fmt::format("{} needs object-storage with bucket-name in the provider: image {} cannot be uploaded",
                   word->first, image.name));
}

void ReadDiskImage(const Section& section, AwsConfig& provider, config::Config& config) {
  auto image = std::make_shared<AwsDiskImage>();
  AwsDiskImageSettings().Read(section, *image);
  const config::DiskImage& global = cloud::UseDiskImage(section, *image, config, provider);
  if (!image->connection.username) image->connection.username = global.username;
  WarnOfTags(section, "tags", config);
  CheckImport(section, *image, provider, config);
  provider.diskimages[image->name] = image;
}

// --- Labels ---------------------------------------------------------------------

// What AWS or the launch template of a fleet does not know (driver-aws.md 2.6, 9.1).
void WarnOfFleet(const Section& section, const AwsPool& pool, const AwsLabel& label, config::Config& config) {
  auto is_one_of = [&label](std::initializer_list<std::string_view> strategies) {
    return std::ranges::find(strategies, *label.fleet_strategy) != strategies.end();
  };
  bool is_known = label.use_spot ? !is_one_of({"prioritized"}) : is_one_of({"prioritized", "lowest-price"});
  if (!is_known) {
    Warn(config, section, "fleet",
         fmt::format(
             "AWS has no allocation-strategy {} for {} instances: it will refuse the fleets of label {}",
             *label.fleet_strategy, label.use_spot ? "spot" : "on-demand", label.name));
  }
  std::vector<std::string> ignored;
  if (label.ebs_optimized) ignored.push_back("ebs-optimized");
  if (label.profile_name || label.profile_arn) ignored.push_back("iam-instance-profile");
  if (label.dedicated_host) ignored.push_back("dedicated-host");
  if (!pool.public_ipv4) ignored.push_back("public-ipv4");
  if (pool.public_ipv6) ignored.push_back("public-ipv6");
  if (ignored.empty()) return;
  Warn(config, section, "fleet",
       fmt::format("{} has no effect on the fleets of label {}", Join(ignored, ", "), label.name));
}

void CheckTags(const Section& section, const AwsLabel& label, config::Config& config) {
  WarnOfTags(section, "tags", config);
  WarnOfTags(section, "dynamic-tags", config);
  std::size_t own = std::size(kOwnTags);
  if (label.tags.size() + label.dynamic_tags.size() + own <= kMaxTags) return;
  Warn(config, section, "tags",
       fmt::format("label {} has more than the {} tags that AWS permits, {} of which are Nodepool's",
                   label.name, kMaxTags, own));
}

void CheckDedicatedHost(const Section& section, const AwsPool& pool, const AwsLabel& label) {
  if (!label.dedicated_host) return;
  if (label.use_spot) {
    throw section.Fail("dedicated-host", "Spot instances can not be used on dedicated hosts");
  }
  if (!pool.places.front().zone) {
    throw section.Fail("dedicated-host", "Availability-zone is required for dedicated hosts");
  }
}

std::string FaultOf(const AwsLabel& label) {
  if (!label.diskimage && !label.cloud_image) return "it needs cloud-image or diskimage";
  if (label.instance_types.empty()) {
    return label.fleet_strategy ? "its fleet has no instance-types" : "it needs instance-type";
  }
  return "";
}

std::shared_ptr<AwsLabel> ReadAwsLabel(const Section& section, const AwsPool& pool, AwsConfig& provider,
                                       config::Config& config) {
  std::shared_ptr<AwsLabel> label = ReadLabel(section, AwsLabelSettings(), config);
  bool has_image = label->diskimage || label->cloud_image;
  if (has_image) cloud::ResolveImage(section, config, cloud::FindIn(provider.cloud_images), provider, *label);
  label->host_key_checking = pool.host_key_checking;
  if (label->profile_name) label->profile_arn.reset();
  CheckTags(section, *label, config);
  if (label->fleet_strategy) {
    WarnOfFleet(section, pool, *label, config);
    label->dedicated_host = false;
  } else {
    CheckDedicatedHost(section, pool, *label);
  }
  label->fault = FaultOf(*label);
  return label;
}

// --- Pools ----------------------------------------------------------------------

std::vector<AwsPlace> PlacesOf(const AwsPool& pool) {
  std::vector<AwsPlace> places;
  for (const std::string& subnet : pool.subnet_ids) places.push_back({pool.zone, subnet});
  if (!places.empty()) return places;
  for (const std::string& zone : pool.zones) places.push_back({zone, std::nullopt});
  if (places.empty()) places.push_back({pool.zone, pool.subnet_id});
  return places;
}

std::shared_ptr<const AwsPool> ReadAwsPool(const Section& section, AwsConfig& provider,
                                           config::Config& config) {
  std::shared_ptr<AwsPool> pool = ReadPool(section, AwsPoolSettings(), provider, provider.pool_defaults);
  pool->places = PlacesOf(*pool);
  if (!pool->places.front().subnet_id) {
    Warn(config, section, "subnet-id",
         fmt::format("pool {} names none: its nodes need an account with a default VPC", pool->name));
  }
  for (const Section& entry : section.Sections("labels"))
    pool->Offer(ReadAwsLabel(entry, *pool, provider, config));
  return pool;
}

// --- Prices ---------------------------------------------------------------------

std::set<std::string> TypesOfLabels(const AwsConfig& provider) {
  std::set<std::string> types;
  for (const AwsLabel* label : driver::cloud::LabelsOf<AwsLabel>(provider))
    types.insert(label->instance_types.begin(), label->instance_types.end());
  return types;
}

void WarnOfPrices(const Section& section, const AwsConfig& provider, config::Config& config) {
  std::set<std::string> types = TypesOfLabels(provider);
  for (const auto& [type, price] : provider.prices) {
    if (!types.contains(type))
      Warn(config, section, "prices", fmt::format("no label has the instance type {}", Excerpt(type)));
  }
}

}  // namespace

std::optional<double> PriceOf(const AwsConfig& config, const AwsLabel& label, const std::string& type) {
  auto found = config.prices.find(type);
  if (found == config.prices.end() || label.dedicated_host) return std::nullopt;
  return label.use_spot ? found->second.spot : found->second.on_demand;
}

std::shared_ptr<const AwsConfig> LoadAwsConfig(const config::ProviderSection& section,
                                               config::Config& config) {
  auto result = std::make_shared<AwsConfig>();
  Section provider = ReadProvider(section, AwsSettings(), *result);
  result->rate = std::max(0.0, result->rate);
  result->cloud_images = cloud::ReadCloudImages(
      provider, AwsCloudImageSettings(),
      [&config](const Section& entry, AwsCloudImage& image) { CheckCloudImage(entry, image, config); });
  for (const Section& entry : provider.Sections("diskimages")) ReadDiskImage(entry, *result, config);
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<const AwsPool> pool = ReadAwsPool(entry, *result, config);
    result->pools[pool->name] = pool;
  }
  WarnOfPrices(provider, *result, config);
  return result;
}

}  // namespace nodepool::drivers::aws
