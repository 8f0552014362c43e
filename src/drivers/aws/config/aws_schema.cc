#include "drivers/aws/config/aws_schema.h"

#include "driver/cloud/section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::aws {

namespace cloud = driver::cloud;
using config::Schema;
using config::Setting;

namespace {

// For sending the file and the import together, in seconds; what AWS does has limits of its own.
constexpr int kUploadTimeout = 24 * 3600;

// Settings of pools that the daemons also read from the provider, where the Python validator refuses them.
std::vector<Setting> ReadFromProvider() {
  return {
      Setting("use-internal-ip", Schema::Bool(), "Reach nodes at their private address.")
          .Default(false)
          .DaemonOnly(),
      Setting("host-key-checking", Schema::Bool(), "Default of the pools.").Default(true).DaemonOnly(),
      Setting("public-ipv4", Schema::Bool(), "Default of the pools.").Default(true).DaemonOnly(),
      Setting("public-ipv6", Schema::Bool(), "Default of the pools.").Default(false).DaemonOnly(),
  };
}

// Settings of pools whose defaults the provider may set.
std::vector<Setting> Limits() {
  return {
      Setting("max-cores", Schema::Int(), "Cores of a pool's nodes."),
      Setting("max-ram", Schema::Int(), "Memory of a pool's nodes.").Unit("MiB"),
      Setting("max-resources", Schema::OpenMap(Schema::Int()),
              "Limits of other resources of a pool's nodes, by AWS's quota codes."),
  };
}

std::vector<Setting> VolumeSettings() {
  return {
      Setting("volume-size", Schema::Int(), "Size of the root volume; default: the image's.").Unit("GiB"),
      Setting("iops", Schema::Int(), "Operations per second of the root volume."),
      Setting("throughput", Schema::Int(), "Throughput of the root volume.").Unit("MiB/s"),
  };
}

Schema CloudImageSchema() {
  Schema filter = Schema::Map({
      Setting("name", Schema::String(), "What is compared, as DescribeImages calls it."),
      Setting("Name", Schema::String(), "The same."),
      Setting("values", Schema::List(Schema::String()), "What it may be; * and ? match any text."),
      Setting("Values", Schema::List(Schema::String()), "The same."),
  });
  Schema image = Schema::Map({
      Setting("name", Schema::String(), "What labels call the image.").Required(),
      Setting("username", Schema::String(), "User for logging in.").Required(),
      Setting("image-id", Schema::String(), "Its id in the cloud."),
      Setting("image-filters", Schema::List(std::move(filter)),
              "The newest available image that matches all is used."),
      Setting("python-path", Schema::String(), "Python interpreter on the node.").Default("auto"),
      Setting("shell-type", Schema::String(), "Shell of the user, as Ansible names it."),
  });
  return image.With(ConnectionTypeSettings())
      .RequireOneOf({"image-id", "image-filters"})
      .Exclusive({"image-id", "image-filters"});
}

Schema DiskImageSchema() {
  Schema image = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level diskimages.").Required(),
      Setting("pause", Schema::Bool(), "Do not upload the image here.").Default(false),
      Setting("username", Schema::String(), "User for logging in; default: the disk image's."),
      Setting("python-path", Schema::String(), "Python interpreter on the node.").Default("auto"),
      Setting("shell-type", Schema::String(), "Shell of the user, as Ansible names it."),
      Setting("architecture", Schema::String(), "Architecture of the image.").Default("x86_64"),
      Setting("ena-support", Schema::Bool(), "The image has the driver of AWS's network.").Default(true),
      Setting("volume-type", Schema::String(), "Kind of the root volume.").Default("gp3"),
      Setting("import-method", Schema::Among({"snapshot", "ebs-direct", "image"}),
              "How the file becomes an image.")
          .Default("snapshot"),
      Setting("imds-support", Schema::OneOf({Schema::Among({"v2.0"}), Schema::Null()}),
              "v2.0: instances of the image answer version 2 of the metadata service only."),
      Setting("tags", Schema::OpenMap(Schema::Any()), "Tags of the image in the cloud."),
  });
  return image.With(ConnectionTypeSettings()).With(VolumeSettings());
}

Schema LabelSchema() {
  Schema fleet = Schema::Map({
      Setting("instance-types", Schema::List(Schema::Any()), "The kinds of machine to choose from.")
          .Required(),
      Setting("allocation-strategy",
              Schema::Among({"prioritized", "price-capacity-optimized", "capacity-optimized", "diversified",
                             "lowest-price"}),
              "How AWS chooses.")
          .Required(),
  });
  Schema profile = Schema::Map({
      Setting("name", Schema::String(), "Its name."),
      Setting("arn", Schema::String(), "Its resource name."),
  });
  Schema label = Schema::Map({
      Setting("name", Schema::String(), "One of the top-level labels.").Required(),
      Setting("cloud-image", Schema::String(), "Boot one of the provider's cloud-images."),
      Setting("diskimage", Schema::String(), "Boot an image of the builder."),
      Setting("instance-type", Schema::String(), "Kind of machine."),
      Setting("instance-types", Schema::List(Schema::String()),
              "Kinds of machine, the preferred one first: a launch tries the next where AWS lacks capacity."),
      Setting("fleet", fleet, "Several kinds of machine, of which AWS chooses one."),
      Setting("key-name", Schema::String(), "Key pair of the cloud to put on the node.")
          .RequiredByValidator(),
      Setting("ebs-optimized", Schema::Bool(), "Dedicated throughput to the volumes.").Default(false),
      Setting("volume-type", Schema::String(), "Kind of the root volume; default: the image's."),
      Setting("userdata", Schema::String(), "User data for cloud-init.").Secret(),
      Setting("iam-instance-profile", profile.Exclusive({"name", "arn"}),
              "Instance profile, whose role the node may use."),
      Setting("tags", Schema::OpenMap(Schema::Any()), "Tags of instance and volumes."),
      Setting("dynamic-tags", Schema::OpenMap(Schema::Any()), "Tags that are made from the node request."),
      Setting("use-spot", Schema::Bool(), "Spare capacity, which AWS may take away.").Default(false),
      Setting("imdsv2", Schema::OneOf({Schema::Among({"required", "optional"}), Schema::Null()}),
              "Whether the metadata service answers version 2 only; default: the image's."),
      Setting("dedicated-host", Schema::Bool(), "A host of its own for each node.").Default(false),
  });
  return label.With(VolumeSettings())
      .Exclusive({"cloud-image", "diskimage"})
      .Exclusive({"instance-type", "fleet"})
      .Exclusive({"instance-types", "instance-type"})
      .Exclusive({"instance-types", "fleet"});
}

Schema PoolSchema() {
  Schema pool = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool.").Required(),
      Setting("labels", Schema::List(LabelSchema()), "The labels offered here.").Required(),
      Setting("availability-zone", Schema::String(), "Zone of the nodes; default: AWS chooses."),
      Setting("availability-zones", Schema::List(Schema::String()),
              "Zones of the default VPC, the preferred one first: a launch tries the next where AWS lacks "
              "capacity."),
      Setting("subnet-id", Schema::String(), "Subnet of the network interface; default: the default VPC's."),
      Setting("subnet-ids", Schema::List(Schema::String()),
              "Subnets, the preferred one first: a launch tries the next where AWS lacks capacity."),
      Setting("security-group-id", Schema::String(),
              "Security group of the network interface; default: the VPC's."),
      Setting("public-ipv4", Schema::Bool(), "A public IPv4 address for each node.").Default(true),
      Setting("public-ipv6", Schema::Bool(), "An IPv6 address for each node.").Default(false),
      Setting("public-ip-address", Schema::Bool(), "The old name of public-ipv4; it wins over the new one."),
      Setting("host-key-checking", Schema::Bool(), "Whether to scan host keys.").Default(true),
      Setting("use-internal-ip", Schema::Bool(), "Reach nodes at their private address.")
          .Default(false)
          .DaemonOnly(),
  });
  return pool.With(PoolSettings())
      .With(Limits())
      .Exclusive({"availability-zone", "availability-zones"})
      .Exclusive({"subnet-id", "subnet-ids"})
      .Exclusive({"subnet-id", "availability-zones"})
      .Exclusive({"subnet-ids", "availability-zones"});
}

Schema MakeSchema() {
  Schema storage = Schema::Map({Setting("bucket-name", Schema::String(), "Name of the bucket.").Required()});
  Schema price = Schema::Map({
      Setting("on-demand", Schema::Number(), "Price on demand.").Unit("per hour"),
      Setting("spot", Schema::Number(), "Price on the spot market.").Unit("per hour"),
  });
  Schema provider = Schema::Map({
      Setting("region-name", Schema::String(), "Region; default: the environment's or the profile's.")
          .RequiredByValidator(),
      Setting("profile-name", Schema::String(),
              "Profile of the credentials; the environment's do not count then."),
      Setting("rate", Schema::Number(), "Calls that change something; 0: no limit.")
          .Default(2)
          .Unit("per second"),
      Setting(
          "prices", Schema::OpenMap(Schema::OneOf({Schema::Number(), price})),
          "What instance types cost per hour, for comments of nodes and metrics: a number (on demand), or "
          "on-demand and spot."),
      cloud::BootTimeout(180),
      cloud::LaunchTimeout(),
      cloud::LaunchRetries(),
      Setting("cloud-images", Schema::List(CloudImageSchema()), "Images that exist in the cloud."),
      Setting("diskimages", Schema::List(DiskImageSchema()), "Images of the builder to upload here."),
      Setting("object-storage", storage, "Where files of images are put for the import."),
      Setting("image-format", Schema::Among({"ova", "vhd", "vhdx", "vmdk", "raw"}), "Format of the uploads.")
          .Default("raw"),
      Setting("image-import-timeout", Schema::Int(), "Time for an import; default: 6 hours.").Unit("seconds"),
      Setting("max-servers", Schema::Int(), "Default of the pools.").Unit("nodes"),
      Setting("pools", Schema::List(PoolSchema()), "Groups of nodes.").Required(),
      Setting("hostname-format", Schema::Any(), "").Removed("hosts are named after their node id; remove it"),
  });
  return provider.With(cloud::UploadSettings(kUploadTimeout)).With(Limits()).With(ReadFromProvider());
}

}  // namespace

const Schema& AwsSchema() {
  static const Schema schema = MakeSchema();
  return schema;
}

}  // namespace nodepool::drivers::aws
