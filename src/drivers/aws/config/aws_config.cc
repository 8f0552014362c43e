#include "drivers/aws/config/aws_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "config/disk_images.h"
#include "drivers/aws/config/aws_schema.h"
#include "drivers/aws/config/tag_settings.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::aws {

namespace cloud = driver::cloud;
using config::Section;

namespace {

constexpr double kMaxPrice = 1e6;

// Reads one section; collects warnings.
class Reader {
 public:
  Reader(const config::ProviderSection& source, config::Config& config)
      : source_(source), config_(config), provider_(OpenProvider(source, AwsSchema())) {}

  std::shared_ptr<const AwsConfig> Read() {
    ReadProvider(source_, provider_, *result_);
    cloud::ReadLaunchSettings(provider_, *result_);
    result_->region_name = provider_.OptionalText("region-name");
    result_->profile_name = provider_.OptionalText("profile-name");
    result_->rate = std::max(0.0, provider_.Float("rate"));
    result_->image_format = provider_.Text("image-format");
    cloud::ReadUploadSettings(provider_, *result_);
    if (provider_.Has("object-storage")) {
      result_->bucket = provider_.Sub("object-storage").Text("bucket-name");
    }
    if (provider_.Has("image-import-timeout")) {
      result_->import_timeout = std::chrono::seconds(ReadCount(provider_, "image-import-timeout"));
    }
    result_->manages_images = true;
    for (const Section& entry : provider_.Sections("cloud-images")) ReadCloudImage(entry);
    for (const Section& entry : provider_.Sections("diskimages")) ReadDiskImage(entry);
    for (const Section& entry : provider_.Sections("pools")) ReadAwsPool(entry);
    ReadPrices();
    return result_;
  }

 private:
  void Warn(const Section& section, std::string_view key, std::string_view message) {
    config_.warnings.push_back(section.Fail(key, message).In(config_.path).message());
  }

  void ReadPrices() {
    if (!provider_.Has("prices")) return;
    const config::Value* prices = provider_.Raw("prices");
    std::set<std::string> types = TypesOfLabels();
    for (const auto& [type, value] : prices->map()) {
      InstancePrice price;
      if (value.is_scalar()) {
        price.on_demand = ReadPrice(type, value);
      } else {
        if (const config::Value* on_demand = value.Find("on-demand"))
          price.on_demand = ReadPrice(type, *on_demand);
        if (const config::Value* spot = value.Find("spot")) price.spot = ReadPrice(type, *spot);
      }
      result_->prices[type] = price;
      if (!types.contains(type)) {
        Warn(provider_, "prices", fmt::format("no label has the instance type {}", Excerpt(type)));
      }
    }
  }

  double ReadPrice(const std::string& type, const config::Value& value) const {
    std::optional<double> price = config::LenientFloat(value);
    if (price && std::isfinite(*price) && *price >= 0 && *price <= kMaxPrice) return *price;
    throw provider_.Fail("prices", fmt::format("{}: expected a price per hour", Excerpt(type)));
  }

  std::set<std::string> TypesOfLabels() const {
    std::set<std::string> types;
    for (const auto& [pool_name, pool] : result_->pools) {
      for (const auto& [label_name, label] : pool->labels) {
        const auto& names = dynamic_cast<const AwsLabel&>(*label).instance_types;
        types.insert(names.begin(), names.end());
      }
    }
    return types;
  }

  void ReadCloudImage(const Section& section) {
    AwsCloudImage image;
    image.name = section.Text("name");
    image.external_name = section.OptionalText("image-id").value_or("");
    image.is_id = !image.external_name.empty();
    if (!image.is_id) image.filters = ReadFilters(section);
    ReadConnectionType(section, image.connection);
    image.connection.username = section.Text("username");
    image.connection.python_path = section.Text("python-path");
    image.connection.shell_type = section.OptionalText("shell-type");
    if (!image.is_id && !NamesPublisher(image.filters)) {
      Warn(section, "image-filters",
           fmt::format(
               "any AWS account can publish an image that matches the filters of cloud image {}; add a "
               "filter owner-id or owner-alias",
               Excerpt(image.name)));
    }
    result_->cloud_images[image.name] = std::move(image);
  }

  static bool NamesPublisher(const std::vector<ImageFilter>& filters) {
    return std::ranges::any_of(filters, [](const ImageFilter& filter) {
      return filter.name == "owner-id" || filter.name == "owner-alias" || filter.name == "image-id";
    });
  }

  // The keys are accepted in any case, as by the Python implementation.
  static std::vector<ImageFilter> ReadFilters(const Section& section) {
    std::vector<ImageFilter> filters;
    for (const Section& entry : section.Sections("image-filters")) {
      ImageFilter filter;
      for (const auto& [key, value] : entry.value().map()) {
        if (Lower(key) == "name" && value.is_scalar()) filter.name = value.text();
        if (Lower(key) != "values") continue;
        if (value.is_scalar()) filter.values.push_back(value.text());
        if (value.kind() != config::Value::Kind::kList) continue;
        for (const config::Value& item : value.list()) {
          if (item.is_scalar()) filter.values.push_back(item.text());
        }
      }
      if (!filter.name.empty()) filters.push_back(std::move(filter));
    }
    return filters;
  }

  void ReadDiskImage(const Section& section) {
    auto image = std::make_shared<AwsDiskImage>();
    const config::DiskImage& global = cloud::ReadDiskImageName(section, config_, *result_, *image);
    ReadConnectionType(section, image->connection);
    image->connection.username = section.OptionalText("username").value_or(global.username);
    image->connection.python_path = section.Text("python-path");
    image->connection.shell_type = section.OptionalText("shell-type");
    std::string method = section.Text("import-method");
    image->import_method = MethodOf(method);
    image->architecture = section.Text("architecture");
    image->ena_support = section.Bool("ena-support");
    image->wants_imdsv2 = section.Has("imds-support");
    ReadVolume(section, image->volume);
    if (!image->volume.type) image->volume.type = section.Text("volume-type");
    TagSettings tags = ReadTagSettings(section, "tags");
    for (const std::string& warning : tags.warnings) Warn(section, "tags", warning);
    for (const auto& [key, value] : tags.tags) image->meta[key] = value;
    if (method == "image" && section.Has("imds-support")) {
      throw section.Fail("imds-support", "IMDSv2 requires the import method snapshot or ebs-direct");
    }
    if (method == "ebs-direct" && result_->image_format != "raw") {
      throw section.Fail("import-method", "ebs-direct needs the provider's image-format raw");
    }
    if (method != "ebs-direct" && !result_->bucket) {
      Warn(
          section, "import-method",
          fmt::format("{} needs object-storage with bucket-name in the provider: image {} cannot be uploaded",
                      method, image->name));
    }
    result_->diskimages[image->name] = image;
  }

  static ImportMethod MethodOf(const std::string& name) {
    if (name == "image") return ImportMethod::kImage;
    return name == "ebs-direct" ? ImportMethod::kEbsDirect : ImportMethod::kSnapshot;
  }

  // The pool's, else the provider's.
  bool PoolBool(const Section& pool, std::string_view key) const {
    return pool.OptionalBool(key).value_or(provider_.Bool(key));
  }

  void ReadLimits(const Section& section, AwsPool& pool) {
    for (const char* resource : {"cores", "ram"}) {
      std::optional<double> limit = section.OptionalFloat(fmt::format("max-{}", resource));
      if (limit) pool.limits[resource] = *limit;
    }
    if (!section.Has("max-resources")) return;
    for (const auto& [resource, text] : section.TextMap("max-resources")) {
      const config::Value* value = section.Raw("max-resources")->Find(resource);
      std::optional<double> limit = value == nullptr ? std::nullopt : config::LenientFloat(*value);
      if (!limit)
        throw section.Fail("max-resources", fmt::format("{}: expected a number", Excerpt(resource)));
      pool.limits[resource] = *limit;
    }
  }

  static std::vector<AwsPlace> ReadPlaces(const Section& section) {
    std::optional<std::string> zone = section.OptionalText("availability-zone");
    std::vector<AwsPlace> places;
    for (const std::string& subnet : TextsOf(section, "subnet-ids")) places.push_back({zone, subnet});
    if (!places.empty()) return places;
    for (const std::string& one : TextsOf(section, "availability-zones")) {
      places.push_back({one, std::nullopt});
    }
    if (places.empty()) places.push_back({zone, section.OptionalText("subnet-id")});
    return places;
  }

  // Error(kInvalid) if the list is there and has no entry.
  static std::vector<std::string> TextsOf(const Section& section, std::string_view key) {
    if (!section.Has(key)) return {};
    std::vector<std::string> texts = section.TextList(key);
    if (texts.empty()) throw section.Fail(key, "expected at least one entry");
    return texts;
  }

  void ReadAwsPool(const Section& section) {
    auto pool = std::make_shared<AwsPool>();
    ReadPool(section, provider_, *pool);
    std::optional<double> servers = provider_.OptionalFloat("max-servers");
    if (servers && !section.Has("max-servers")) pool->max_servers = *servers;
    ReadLimits(provider_, *pool);
    ReadLimits(section, *pool);
    pool->use_internal_ip = PoolBool(section, "use-internal-ip");
    pool->places = ReadPlaces(section);
    pool->security_group_id = section.OptionalText("security-group-id");
    pool->public_ipv4 = section.OptionalBool("public-ip-address").value_or(PoolBool(section, "public-ipv4"));
    pool->public_ipv6 = PoolBool(section, "public-ipv6");
    if (!pool->places.front().subnet_id) {
      Warn(section, "subnet-id",
           fmt::format("pool {} names none: its nodes need an account with a default VPC", pool->name));
    }
    for (const Section& entry : section.Sections("labels")) {
      pool->Offer(ReadLabel(entry, section, *pool));
    }
    result_->pools[pool->name] = pool;
  }

  std::shared_ptr<AwsLabel> ReadLabel(const Section& section, const Section& pool_section,
                                      const AwsPool& pool) {
    auto label = std::make_shared<AwsLabel>();
    label->name = ReadLabelName(section, "name", config_);
    bool has_image = section.Has("diskimage") || section.Has("cloud-image");
    if (has_image) {
      cloud::ReadLabelImage(section, config_, cloud::FindIn(result_->cloud_images), *result_, *label);
    }
    label->host_key_checking = PoolBool(pool_section, "host-key-checking");
    ReadInstanceTypes(section, *label);
    label->key_name = section.OptionalText("key-name");
    label->ebs_optimized = section.Bool("ebs-optimized");
    ReadVolume(section, label->volume);
    label->userdata = section.OptionalText("userdata");
    if (section.Has("iam-instance-profile")) {
      Section profile = section.Sub("iam-instance-profile");
      label->profile_name = profile.OptionalText("name");
      if (!label->profile_name) label->profile_arn = profile.OptionalText("arn");
    }
    label->use_spot = section.Bool("use-spot");
    label->dedicated_host = section.Bool("dedicated-host");
    label->imdsv2 = section.OptionalText("imdsv2");
    ReadTags(section, *label);
    if (label->fleet_strategy) {
      WarnOfFleet(section, pool, *label);
      label->dedicated_host = false;
    } else {
      CheckDedicatedHost(section, pool, *label);
    }
    label->fault = FaultOf(*label);
    return label;
  }

  static void ReadInstanceTypes(const Section& section, AwsLabel& label) {
    label.instance_types = TextsOf(section, "instance-types");
    if (std::optional<std::string> type = section.OptionalText("instance-type")) {
      label.instance_types.push_back(std::move(*type));
    }
    if (!section.Has("fleet")) return;
    Section fleet = section.Sub("fleet");
    label.instance_types = fleet.TextList("instance-types");
    label.fleet_strategy = fleet.Text("allocation-strategy");
  }

  // What AWS or the launch template of a fleet does not know (driver-aws.md 2.6, 9.1).
  void WarnOfFleet(const Section& section, const AwsPool& pool, const AwsLabel& label) {
    auto is_one_of = [&label](std::initializer_list<std::string_view> strategies) {
      return std::ranges::find(strategies, *label.fleet_strategy) != strategies.end();
    };
    bool is_known = label.use_spot ? !is_one_of({"prioritized"}) : is_one_of({"prioritized", "lowest-price"});
    if (!is_known) {
      Warn(section, "fleet",
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
    Warn(section, "fleet",
         fmt::format("{} has no effect on the fleets of label {}", Join(ignored, ", "), label.name));
  }

  static void ReadVolume(const Section& section, RootVolume& volume) {
    auto count = [&section](const char* key) -> std::optional<int> {
      if (!section.Has(key)) return std::nullopt;
      return ReadCount(section, key);
    };
    volume.size = count("volume-size");
    volume.type = section.OptionalText("volume-type");
    volume.iops = count("iops");
    volume.throughput = count("throughput");
  }

  void ReadTags(const Section& section, AwsLabel& label) {
    TagSettings tags = ReadTagSettings(section, "tags");
    TagSettings dynamic = ReadTagSettings(section, "dynamic-tags");
    for (const std::string& warning : tags.warnings) Warn(section, "tags", warning);
    for (const std::string& warning : dynamic.warnings) Warn(section, "dynamic-tags", warning);
    label.tags = std::move(tags.tags);
    label.dynamic_tags = std::move(dynamic.tags);
    std::size_t own = std::size(kOwnTags);
    if (label.tags.size() + label.dynamic_tags.size() + own > kMaxTags) {
      Warn(section, "tags",
           fmt::format("label {} has more than the {} tags that AWS permits, {} of which are Nodepool's",
                       label.name, kMaxTags, own));
    }
  }

  static void CheckDedicatedHost(const Section& section, const AwsPool& pool, const AwsLabel& label) {
    if (!label.dedicated_host) return;
    if (label.use_spot) {
      throw section.Fail("dedicated-host", "Spot instances can not be used on dedicated hosts");
    }
    if (!pool.places.front().zone) {
      throw section.Fail("dedicated-host", "Availability-zone is required for dedicated hosts");
    }
  }

  static std::string FaultOf(const AwsLabel& label) {
    if (!label.diskimage && !label.cloud_image) return "it needs cloud-image or diskimage";
    if (label.instance_types.empty()) {
      return label.fleet_strategy ? "its fleet has no instance-types" : "it needs instance-type";
    }
    return "";
  }

  const config::ProviderSection& source_;
  config::Config& config_;
  Section provider_;
  std::shared_ptr<AwsConfig> result_ = std::make_shared<AwsConfig>();
};

}  // namespace

std::optional<double> PriceOf(const AwsConfig& config, const AwsLabel& label, const std::string& type) {
  auto found = config.prices.find(type);
  if (found == config.prices.end() || label.dedicated_host) return std::nullopt;
  return label.use_spot ? found->second.spot : found->second.on_demand;
}

std::shared_ptr<const AwsConfig> LoadAwsConfig(const config::ProviderSection& section,
                                               config::Config& config) {
  return Reader(section, config).Read();
}

}  // namespace nodepool::drivers::aws
