#include "drivers/gce/config/gce_settings.h"

#include "driver/cloud/section.h"

namespace nodepool::drivers::gce {

namespace cloud = driver::cloud;

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
