#include "drivers/aws/config/aws_settings.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <cmath>

#include "base/text.h"
#include "driver/provider_section.h"

namespace nodepool::drivers::aws {

namespace cloud = driver::cloud;
using driver::ConnectionSettings;

namespace {

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// As Python's str() writes the value.
std::string TagText(const config::Value& value) {
  using Kind = config::Value::Kind;
  switch (value.kind()) {
    case Kind::kNull:
      return "None";
    case Kind::kBool:
      return value.bool_value() ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.int_value());
    case Kind::kList:
    case Kind::kMap:
      return boost::json::serialize(value.ToJson());
    default:
      return value.text();
  }
}

}  // namespace

std::string CutToCharacters(std::string_view text, std::size_t limit) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (BeginsCharacter(text[i]) && ++characters > limit) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

TagSettings ReadTagSettings(const config::Section& section, std::string_view key) {
  TagSettings result;
  const config::Value* found = section.Raw(key);
  if (found == nullptr || found->kind() != config::Value::Kind::kMap) return result;
  for (const auto& [name, value] : found->map()) {
    auto warn = [&result, &name = name](const std::string& what) {
      result.warnings.push_back(fmt::format("tag {} {}", Excerpt(name), what));
    };
    if (name.starts_with("aws:") || CutToCharacters(name, kMaxTagKey) != name) {
      warn(
          fmt::format("is left out: AWS permits no key that begins with aws: or is longer than {} characters",
                      kMaxTagKey));
      continue;
    }
    std::string text = TagText(value);
    if (value.kind() != config::Value::Kind::kString)
      warn(fmt::format("is not text; it is sent as {}", Excerpt(text)));
    result.tags[name] = std::move(text);
  }
  return result;
}

namespace {

constexpr double kMaxPrice = 1e6;

// A list that has an entry if it is there.
template <class Owner>
config::Binding<Owner> SomeTexts(Setting setting, std::vector<std::string> Owner::*member) {
  setting.schema = Schema::List(Schema::String());
  return {std::move(setting), [member](const Section& section, const std::string& key, Owner& owner) {
            if (!section.IsGiven(key)) return;
            owner.*member = section.TextList(key);
            if ((owner.*member).empty()) throw section.Fail(key, "expected at least one entry");
          }};
}

// --- Images ---------------------------------------------------------------------

// The keys are accepted in any case, as by the Python implementation.
void ReadFilters(const Section& section, const std::string& key, AwsCloudImage& image) {
  for (const Section& entry : section.Sections(key)) {
    ImageFilter filter;
    for (const auto& [name, value] : entry.value().map()) {
      if (Lower(name) == "name" && value.is_scalar()) filter.name = value.text();
      if (Lower(name) != "values") continue;
      if (value.is_scalar()) filter.values.push_back(value.text());
      if (value.kind() != config::Value::Kind::kList) continue;
      for (const config::Value& item : value.list()) {
        if (item.is_scalar()) filter.values.push_back(item.text());
      }
    }
    if (!filter.name.empty()) image.filters.push_back(std::move(filter));
  }
}

Bindings<RootVolume> VolumeSettings(const char* help_of_type) {
  return {
      {Setting("volume-type", help_of_type), &RootVolume::type},
      {Setting("volume-size", "Size of the root volume; default: the image's.").Unit("GiB"),
       &RootVolume::size},
      {Setting("iops", "Operations per second of the root volume."), &RootVolume::iops},
      {Setting("throughput", "Throughput of the root volume.").Unit("MiB/s"), &RootVolume::throughput},
  };
}

// --- Labels ---------------------------------------------------------------------

Bindings<AwsLabel> FleetSettings() {
  return {
      {Setting("instance-types", Schema::List(Schema::Any()), "The kinds of machine to choose from.")
           .Required(),
       &AwsLabel::instance_types},
      {Setting("allocation-strategy",
               Schema::Among({"prioritized", "price-capacity-optimized", "capacity-optimized", "diversified",
                              "lowest-price"}),
               "How AWS chooses.")
           .Required(),
       &AwsLabel::fleet_strategy},
  };
}

Bindings<AwsLabel> InstanceTypeSettings() {
  Bindings<AwsLabel> settings = {
      SomeTexts(
          {"instance-types",
           "Kinds of machine, the preferred one first: a launch tries the next where AWS lacks capacity."},
          &AwsLabel::instance_types),
      {Setting("instance-type", Schema::String(), "Kind of machine."),
       [](const Section& section, const std::string& key, AwsLabel& label) {
         if (section.IsGiven(key)) label.instance_types.push_back(section.Text(key));
       }},
      {Setting("fleet", "Several kinds of machine, of which AWS chooses one."), FleetSettings()},
  };
  return settings.Exclusive({"instance-type", "fleet"})
      .Exclusive({"instance-types", "instance-type"})
      .Exclusive({"instance-types", "fleet"});
}

Bindings<AwsLabel> ProfileSettings() {
  Bindings<AwsLabel> settings = {
      {Setting("name", "Its name."), &AwsLabel::profile_name},
      {Setting("arn", "Its resource name."), &AwsLabel::profile_arn},
  };
  return settings.Exclusive({"name", "arn"});
}

template <class Target>
config::Binding<Target> Tags(const char* key, const char* help,
                             std::map<std::string, std::string> Target::*member) {
  return {Setting(key, Schema::OpenMap(Schema::Any()), help),
          [member](const Section& section, const std::string& name, Target& target) {
            target.*member = ReadTagSettings(section, name).tags;
          }};
}

// --- Pools ----------------------------------------------------------------------

// Whose defaults the provider may set.
Bindings<AwsPool> Limits() {
  return {
      Limit({"max-cores", "Cores of a pool's nodes."}, resource::kCores),
      Limit(Setting("max-ram", "Memory of a pool's nodes.").Unit("MiB"), resource::kRam),
      {Setting("max-resources", Schema::OpenMap(Schema::Int()),
               "Limits of other resources of a pool's nodes, by AWS's quota codes."),
       [](const Section& section, const std::string& key, AwsPool& pool) {
         driver::ReadAmounts(section, key, pool.limits);
       }},
  };
}

// Settings of pools that are also read from the provider: the daemons do, the Python validator refuses most.
Bindings<AwsPool> PoolDefaults() {
  return Limits().With({
      {Setting("max-servers", Schema::Int(), "Default of the pools.").Unit("nodes"), &AwsPool::max_servers},
      {Setting("use-internal-ip", "Reach nodes at their private address.").DaemonOnly(),
       &AwsPool::use_internal_ip},
      {Setting("host-key-checking", "Default of the pools.").DaemonOnly(), &AwsPool::host_key_checking},
      {Setting("public-ipv4", "Default of the pools.").DaemonOnly(), &AwsPool::public_ipv4},
      {Setting("public-ipv6", "Default of the pools.").DaemonOnly(), &AwsPool::public_ipv6},
  });
}

// --- Prices ---------------------------------------------------------------------

double ReadPrice(const Section& section, const std::string& key, const std::string& type,
                 const config::Value& value) {
  std::optional<double> price = config::LenientFloat(value);
  if (price && std::isfinite(*price) && *price >= 0 && *price <= kMaxPrice) return *price;
  throw section.Fail(key, fmt::format("{}: expected a price per hour", Excerpt(type)));
}

void ReadPrices(const Section& section, const std::string& key, AwsConfig& provider) {
  if (!section.IsGiven(key)) return;
  for (const auto& [type, value] : section.Raw(key)->map()) {
    InstancePrice& price = provider.prices[type];
    const config::Value* on_demand = value.is_scalar() ? &value : value.Find("on-demand");
    const config::Value* spot = value.is_scalar() ? nullptr : value.Find("spot");
    if (on_demand != nullptr) price.on_demand = ReadPrice(section, key, type, *on_demand);
    if (spot != nullptr) price.spot = ReadPrice(section, key, type, *spot);
  }
}

Schema PricesSchema() {
  Schema price = Schema::Map({
      Setting("on-demand", Schema::Number(), "Price on demand.").Unit("per hour"),
      Setting("spot", Schema::Number(), "Price on the spot market.").Unit("per hour"),
  });
  return Schema::OpenMap(Schema::OneOf({Schema::Number(), price}));
}

}  // namespace

const Bindings<AwsCloudImage>& AwsCloudImageSettings() {
  static const Schema filter = Schema::Map({
      Setting("name", Schema::String(), "What is compared, as DescribeImages calls it."),
      Setting("Name", Schema::String(), "The same."),
      Setting("values", Schema::List(Schema::String()), "What it may be; * and ? match any text."),
      Setting("Values", Schema::List(Schema::String()), "The same."),
  });
  static const Bindings<AwsCloudImage> settings =
      Bindings<AwsCloudImage>{
          {Setting("name", "What labels call the image.").Required(), &AwsCloudImage::name},
          {Setting("image-id", "Its id in the cloud."), &AwsCloudImage::external_name},
          {Setting("image-filters", Schema::List(filter),
                   "The newest available image that matches all is used."),
           ReadFilters},
      }
          .With(&AwsCloudImage::connection, LoginSettings())
          .With({{Setting("username", "User for logging in.").Required(), &AwsCloudImage::connection,
                  &ConnectionSettings::username}})
          .RequireOneOf({"image-id", "image-filters"})
          .Exclusive({"image-id", "image-filters"});
  return settings;
}

const Bindings<AwsDiskImage>& AwsDiskImageSettings() {
  static const Bindings<AwsDiskImage> settings =
      Bindings<AwsDiskImage>(cloud::DiskImageNameSettings())
          .With(&AwsDiskImage::connection, LoginSettings())
          .With({
              {Setting("username", "User for logging in; default: the disk image's."),
               &AwsDiskImage::connection, &ConnectionSettings::username},
              {Setting("architecture", "Architecture of the image."), &AwsDiskImage::architecture},
              {Setting("ena-support", "The image has the driver of AWS's network."),
               &AwsDiskImage::ena_support},
              {Setting("import-method", "How the file becomes an image."), &AwsDiskImage::import_method,
               ImportMethods()},
              {Setting("imds-support", Schema::OneOf({Schema::Among({"v2.0"}), Schema::Null()}),
                       "v2.0: instances of the image answer version 2 of the metadata service only."),
               [](const Section& section, const std::string& key, AwsDiskImage& image) {
                 image.wants_imdsv2 = section.IsGiven(key);
               }},
              {Setting("tags", Schema::OpenMap(Schema::Any()), "Tags of the image in the cloud."),
               [](const Section& section, const std::string& key, AwsDiskImage& image) {
                 for (const auto& [tag, text] : ReadTagSettings(section, key).tags) image.meta[tag] = text;
               }},
          })
          .With(&AwsDiskImage::volume, VolumeSettings("Kind of the root volume."));
  return settings;
}

const Bindings<AwsLabel>& AwsLabelSettings() {
  static const Bindings<AwsLabel> settings =
      Bindings<AwsLabel>(cloud::LabelImageSettings())
          .With(InstanceTypeSettings())
          .With({
              {Setting("key-name", "Key pair of the cloud to put on the node.").RequiredByValidator(),
               &AwsLabel::key_name},
              {Setting("ebs-optimized", "Dedicated throughput to the volumes."), &AwsLabel::ebs_optimized},
              {Setting("userdata", "User data for cloud-init.").Secret(), &AwsLabel::userdata},
              {Setting("iam-instance-profile", "Instance profile, whose role the node may use."),
               ProfileSettings()},
              Tags("tags", "Tags of instance and volumes.", &AwsLabel::tags),
              Tags("dynamic-tags", "Tags that are made from the node request.", &AwsLabel::dynamic_tags),
              {Setting("use-spot", "Spare capacity, which AWS may take away."), &AwsLabel::use_spot},
              {Setting("imdsv2", Schema::OneOf({Schema::Among({"required", "optional"}), Schema::Null()}),
                       "Whether the metadata service answers version 2 only; default: the image's."),
               &AwsLabel::imdsv2},
              {Setting("dedicated-host",
                       "A host of its own for each node; needs the pool's availability-zone, and excludes "
                       "use-spot."),
               &AwsLabel::dedicated_host},
          })
          .With(&AwsLabel::volume, VolumeSettings("Kind of the root volume; default: the image's."));
  return settings;
}

const Bindings<AwsPool>& AwsPoolSettings() {
  static const Bindings<AwsPool> settings =
      Bindings<AwsPool>(PoolSettings())
          .With({
              Setting("labels", Schema::List(AwsLabelSettings().ToSchema()), "The labels offered here.")
                  .Required(),
              {Setting("availability-zone", "Zone of the nodes; default: AWS chooses."), &AwsPool::zone},
              SomeTexts(
                  {"availability-zones",
                   "Zones of the default VPC, the preferred one first: a launch tries the next where AWS "
                   "lacks capacity."},
                  &AwsPool::zones),
              {Setting("subnet-id", "Subnet of the network interface; default: the default VPC's."),
               &AwsPool::subnet_id},
              SomeTexts(
                  {"subnet-ids",
                   "Subnets, the preferred one first: a launch tries the next where AWS lacks capacity."},
                  &AwsPool::subnet_ids),
              {Setting("security-group-id", "Security group of the network interface; default: the VPC's."),
               &AwsPool::security_group_id},
              {Setting("public-ipv4", "A public IPv4 address for each node."), &AwsPool::public_ipv4},
              {Setting("public-ipv6", "An IPv6 address for each node."), &AwsPool::public_ipv6},
              {Setting("public-ip-address", "The old name of public-ipv4; it wins over the new one.")
                   .Inherited(),
               &AwsPool::public_ipv4},
              cloud::HostKeyChecking(),
              cloud::RecheckInterval(),
              cloud::Recheck(),
              {Setting("use-internal-ip", "Reach nodes at their private address.").DaemonOnly(),
               &AwsPool::use_internal_ip},
          })
          .With(Limits())
          .Exclusive({"availability-zone", "availability-zones"})
          .Exclusive({"subnet-id", "subnet-ids"})
          .Exclusive({"subnet-id", "availability-zones"})
          .Exclusive({"subnet-ids", "availability-zones"});
  return settings;
}

const Bindings<AwsConfig>& AwsSettings() {
  static const Bindings<AwsConfig> storage = {
      {Setting("bucket-name", "Name of the bucket.").Required(), &AwsConfig::bucket}};
  static const Bindings<AwsConfig> settings =
      Bindings<AwsConfig>{
          {Setting("region-name", "Region; default: the environment's or the profile's.")
               .RequiredByValidator(),
           &AwsConfig::region_name},
          {Setting("profile-name", "Profile of the credentials; the environment's do not count then."),
           &AwsConfig::profile_name},
          {Setting("rate", "Calls that change something; 0: no limit.").Unit("per second"), &AwsConfig::rate},
          {Setting(
               "prices", PricesSchema(),
               "What instance types cost per hour, for comments of nodes and metrics: a number (on demand), "
               "or on-demand and spot."),
           ReadPrices},
          cloud::BootTimeout(),
          cloud::LaunchTimeout(),
          cloud::LaunchRetries(),
          Setting("cloud-images", Schema::List(AwsCloudImageSettings().ToSchema()),
                  "Images that exist in the cloud."),
          Setting("diskimages", Schema::List(AwsDiskImageSettings().ToSchema()),
                  "Images of the builder to upload here."),
          {Setting("object-storage",
                   "Where files of images are put for the import; the import methods snapshot and image need "
                   "it."),
           storage},
          {Setting("image-format", Schema::Among({"ova", "vhd", "vhdx", "vmdk", "raw"}),
                   "Format of the uploads."),
           &AwsConfig::image_format},
          {Setting("image-import-timeout", "Time for an import; default: 6 hours."),
           &AwsConfig::import_timeout},
          Setting("pools", Schema::List(AwsPoolSettings().ToSchema()), "Groups of nodes.").Required(),
          Setting("hostname-format", Schema::Any(), "")
              .Removed("hosts are named after their node id; remove it"),
      }
          .With(cloud::UploadSettings())
          .With(&AwsConfig::pool_defaults, PoolDefaults());
  return settings;
}

const Words<ImportMethod>& ImportMethods() {
  static const Words<ImportMethod> words = {{"snapshot", ImportMethod::kSnapshot},
                                            {"ebs-direct", ImportMethod::kEbsDirect},
                                            {"image", ImportMethod::kImage}};
  return words;
}

const Schema& AwsSchema() {
  static const Schema schema = AwsSettings().ToSchema();
  return schema;
}

}  // namespace nodepool::drivers::aws
