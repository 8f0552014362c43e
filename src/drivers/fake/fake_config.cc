#include "drivers/fake/fake_config.h"

#include <limits>

#include "config/schema/section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

namespace cloud = driver::cloud;
using config::Schema;
using config::Section;
using config::Setting;

namespace {

Schema BoundedNumber(double min, double max) {
  return Schema::OneOf({Schema::Int().Between(min, max), Schema::Float().Between(min, max)});
}

Schema SimulationSchema() {
  constexpr double kMaxSeconds = 86400;
  constexpr double kMaxAmount = 1e12;
  Schema latency = BoundedNumber(0, kMaxSeconds);
  Schema rate = BoundedNumber(0, 1);
  Schema limit = BoundedNumber(-1, kMaxAmount);
  Schema limits = Schema::Map({
      Setting("cores", limit, "Virtual CPUs; -1: no limit.").Default(100),
      Setting("instances", limit, "Servers; -1: no limit.").Default(20),
      Setting("ram", limit, "Memory; -1: no limit.").Default(1'000'000).Unit("MiB"),
      Setting("volumes", limit, "Volumes; -1: no limit.").Default(100),
      Setting("volume-gb", limit, "Volume space; -1: no limit.").Default(1'000'000).Unit("GB"),
  });
  Schema flavor = Schema::Map({
      Setting("name", Schema::String(), "Name of the flavor.").Required(),
      Setting("ram", BoundedNumber(1, kMaxAmount), "Memory.").Default(8192).Unit("MiB"),
      Setting("vcpus", BoundedNumber(1, kMaxAmount), "Virtual CPUs.").Default(4),
  });
  return Schema::Map({
      Setting("create-latency", latency, "Time until a new server is active.").Default(0.1).Unit("seconds"),
      Setting("delete-latency", latency, "Time until a deleted server or image is gone.")
          .Default(0.0)
          .Unit("seconds"),
      Setting("upload-latency", latency, "Time that an image upload takes.").Default(0.0).Unit("seconds"),
      Setting("image-format", Schema::String(), "Format of the images that it wants uploaded.")
          .Default("qcow2"),
      Setting("create-failure-rate", rate, "Part of the creations that fail, 0 to 1.").Default(0.0),
      Setting("delete-failure-rate", rate, "Part of the deletions that fail, 0 to 1.").Default(0.0),
      Setting("upload-failure-rate", rate, "Part of the image uploads that fail, 0 to 1.").Default(0.0),
      Setting("seed", Schema::Int(), "Makes the failures the same in each run."),
      Setting(
          "directory", Schema::String(),
          "Keep servers and images as files here: several processes share the cloud, and it outlives them."),
      Setting("control-port", Schema::Int().Between(0, 65535),
              "Port on loopback through which tests inspect and disturb the cloud; default: none."),
      Setting("limits", limits, "What the cloud allows."),
      Setting("quota-error", Schema::Bool(),
              "Refuse what exceeds a limit; false reports limits without enforcing them.")
          .Default(true),
      Setting("images", Schema::List(Schema::String()), "Images that exist; default: Fake Precise."),
      Setting("flavors", Schema::List(flavor), "Flavors; default: Fake Flavor and Unreal Flavor."),
      Setting("availability-zones", Schema::List(Schema::String()), "Zones; default: az1 and az2."),
  });
}

double Limit(const Section& limits, std::string_view key) {
  double value = limits.Float(key);
  return value < 0 ? std::numeric_limits<double>::infinity() : value;
}

FakeSimulation ReadSimulation(const Section& section) {
  FakeSimulation simulation;
  simulation.create_latency = section.Seconds("create-latency");
  simulation.delete_latency = section.Seconds("delete-latency");
  simulation.upload_latency = section.Seconds("upload-latency");
  simulation.create_failure_rate = section.Float("create-failure-rate");
  simulation.delete_failure_rate = section.Float("delete-failure-rate");
  simulation.upload_failure_rate = section.Float("upload-failure-rate");
  if (std::optional<std::int64_t> seed = section.OptionalInt("seed")) simulation.seed = *seed;
  if (section.Has("directory")) simulation.directory = section.Text("directory");
  if (std::optional<std::int64_t> port = section.OptionalInt("control-port")) {
    if (*port < 0 || *port > 65535) throw section.Fail("control-port", "expected a port from 0 to 65535");
    simulation.control_port = static_cast<int>(*port);
  }
  Section limits = section.Sub("limits");
  simulation.limits = {.cores = Limit(limits, "cores"),
                       .instances = Limit(limits, "instances"),
                       .ram = Limit(limits, "ram"),
                       .volumes = Limit(limits, "volumes"),
                       .volume_gb = Limit(limits, "volume-gb")};
  simulation.quota_error = section.Bool("quota-error");
  if (section.Has("images")) simulation.images = section.TextList("images");
  if (section.Has("availability-zones"))
    simulation.availability_zones = section.TextList("availability-zones");
  if (section.Has("flavors")) simulation.flavors.clear();
  for (const Section& entry : section.Sections("flavors")) {
    simulation.flavors.push_back(
        {.name = entry.Text("name"), .ram = ReadCount(entry, "ram"), .vcpus = ReadCount(entry, "vcpus")});
  }
  return simulation;
}

Schema Texts() { return Schema::List(Schema::String()); }

// A setting of openstack providers that has no effect here.
Setting Ignored(const char* key, Schema schema) {
  return Setting(key, std::move(schema), "Of the openstack driver; without effect.");
}

Schema LabelSchema() {
  Schema label = cloud::LabelSchema().With({
      Setting("min-ram", Schema::Int(), "The smallest flavor with at least this memory is used.")
          .Default(0)
          .Unit("MiB"),
      Setting("flavor-name", Schema::String(), "Flavor; with min-ram a part of its name."),
      Setting("console-log", Schema::Bool(), "Log the console of nodes that fail to start.").Default(false),
      Setting("boot-from-volume", Schema::Bool(), "Boot from a new volume.").Default(false),
      Setting("volume-size", Schema::Int(), "Size of that volume.").Default(50).Unit("GB"),
      Setting("instance-properties", Schema::OpenMap(Schema::Any()), "Metadata of the server."),
      Setting("networks", Texts(), "Networks instead of the pool's."),
      Ignored("key-name", Schema::String()),
      Ignored("dynamic-instance-properties", Schema::OpenMap(Schema::Any())),
      Ignored("userdata", Schema::String()).Secret(),
  });
  return label.RequireOneOf({"min-ram", "flavor-name"}).RequireOneOf({"diskimage", "cloud-image"});
}

Schema MakeSchema() {
  Setting config_drive = Ignored("config-drive", Schema::Bool());
  Schema disk_image = cloud::DiskImageSchema().With({config_drive});
  Schema cloud_image = cloud::CloudImageSchema().With({config_drive});
  Schema pool = cloud::PoolSchema(LabelSchema())
                    .With({Setting("networks", Texts(), "Networks of the nodes."),
                           Ignored("security-groups", Texts()), Ignored("auto-floating-ip", Schema::Bool())});
  Schema provider = Schema::Map({
      Setting("cloud", Schema::String(), "Any name; the nodes' cloud.").RequiredByValidator(),
      Setting("region-name", Schema::String(), "Region of the cloud."),
      cloud::BootTimeout(),
      cloud::LaunchTimeout(),
      cloud::LaunchRetries(),
      Setting("diskimages", Schema::List(disk_image), "Images of the builder to upload here."),
      Setting("cloud-images", Schema::List(cloud_image), "Images that exist in the cloud."),
      Setting("pools", Schema::List(pool), "Groups of nodes."),
      Ignored("rate", Schema::Number()),
      Ignored("clean-floating-ips", Schema::Bool()),
      Ignored("port-cleanup-interval", Schema::Int()),
      Ignored("delete-legacy-leaked", Schema::Bool()),
      Ignored("nodepool-id", Schema::String()),
      Setting("simulation", SimulationSchema(), "How the simulated cloud behaves."),
  });
  return provider.With(cloud::UploadSettings()).With(cloud::SettingsOfVersion2());
}

std::shared_ptr<driver::LabelConfig> ReadFakeLabel(const Section& section, const Section& pool,
                                                   const config::Config& config, FakeConfig& provider) {
  auto label = std::make_shared<FakeLabel>();
  cloud::ReadLabel(section, pool, config, cloud::FindIn(provider.cloud_images), provider, *label);
  label->min_ram = ReadCount(section, "min-ram");
  label->flavor_name = section.OptionalText("flavor-name");
  label->console_log = section.Bool("console-log");
  label->boot_from_volume = section.Bool("boot-from-volume");
  label->volume_size = ReadCount(section, "volume-size");
  label->instance_properties = ReadObject(section, "instance-properties");
  label->networks = (section.Has("networks") ? section : pool).TextList("networks");
  return label;
}

}  // namespace

const Schema& FakeSchema() {
  static const Schema schema = MakeSchema();
  return schema;
}

std::shared_ptr<const FakeConfig> LoadFakeConfig(const config::ProviderSection& section,
                                                 config::Config& config) {
  auto result = std::make_shared<FakeConfig>();
  Section provider = OpenProvider(section, FakeSchema());
  Section simulation = provider.Sub("simulation");
  ReadProvider(section, provider, *result);
  result->manages_images = true;
  result->image_format = simulation.Text("image-format");
  result->cloud = provider.OptionalText("cloud");
  result->region_name = provider.OptionalText("region-name");
  cloud::ReadLaunchSettings(provider, *result);
  cloud::ReadUploadSettings(provider, *result);
  for (const Section& entry : provider.Sections("diskimages")) {
    auto image = std::make_shared<driver::ProviderDiskImage>();
    cloud::ReadDiskImage(entry, config, *result, *image);
    result->diskimages[image->name] = image;
  }
  for (const Section& entry : provider.Sections("cloud-images")) {
    cloud::CloudImage image;
    cloud::ReadCloudImage(entry, image);
    result->cloud_images[image.name] = std::move(image);
  }
  for (const Section& entry : provider.Sections("pools")) {
    auto pool = std::make_shared<driver::PoolConfig>();
    cloud::ReadCloudPool(entry, provider, *pool);
    for (const Section& offer : entry.Sections("labels")) {
      pool->Offer(ReadFakeLabel(offer, entry, config, *result));
    }
    result->pools[pool->name] = std::move(pool);
  }
  result->simulation = ReadSimulation(simulation);
  return result;
}

}  // namespace nodepool::drivers
