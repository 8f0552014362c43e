#include "drivers/fake/fake_config.h"

#include <limits>

#include "driver/provider_section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

namespace cloud = driver::cloud;
namespace {

const Bindings<FakeSimulation>& SimulationSettings() {
  constexpr double kMaxAmount = 1e12;
  static const Schema latency = Schema::Number().Between(0, 86400);
  static const Schema rate = Schema::Number().Between(0, 1);
  static const Schema limit = Schema::Number().Between(-1, kMaxAmount);
  static const Schema amount = Schema::Number().Between(1, kMaxAmount);
  static const Bindings<FakeLimits> limits = {
      {Setting("cores", limit, "Virtual CPUs; -1: no limit."), &FakeLimits::cores},
      {Setting("instances", limit, "Servers; -1: no limit."), &FakeLimits::instances},
      {Setting("ram", limit, "Memory; -1: no limit.").Unit("MiB"), &FakeLimits::ram},
      {Setting("volumes", limit, "Volumes; -1: no limit."), &FakeLimits::volumes},
      {Setting("volume-gb", limit, "Volume space; -1: no limit.").Unit("GB"), &FakeLimits::volume_gb},
  };
  static const Bindings<FakeFlavor> flavor = {
      {Setting("name", "Name of the flavor.").Required(), &FakeFlavor::name},
      {Setting("ram", amount, "Memory.").Unit("MiB"), &FakeFlavor::ram},
      {Setting("vcpus", amount, "Virtual CPUs."), &FakeFlavor::vcpus},
  };
  static const Bindings<FakeSimulation> settings = {
      {Setting("create-latency", latency, "Time until a new server is active."),
       &FakeSimulation::create_latency},
      {Setting("delete-latency", latency, "Time until a deleted server or image is gone."),
       &FakeSimulation::delete_latency},
      {Setting("upload-latency", latency, "Time that an image upload takes."),
       &FakeSimulation::upload_latency},
      {Setting("image-format", "Format of the images that it wants uploaded."),
       &FakeSimulation::image_format},
      {Setting("create-failure-rate", rate, "Part of the creations that fail, 0 to 1."),
       &FakeSimulation::create_failure_rate},
      {Setting("delete-failure-rate", rate, "Part of the deletions that fail, 0 to 1."),
       &FakeSimulation::delete_failure_rate},
      {Setting("upload-failure-rate", rate, "Part of the image uploads that fail, 0 to 1."),
       &FakeSimulation::upload_failure_rate},
      {Setting("seed", "Makes the failures the same in each run."), &FakeSimulation::seed},
      {Setting(
           "directory",
           "Keep servers and images as files here: several processes share the cloud, and it outlives them."),
       &FakeSimulation::directory},
      {Setting("control-port", Schema::Int().Between(0, 65535),
               "Port on loopback through which tests inspect and disturb the cloud; default: none."),
       &FakeSimulation::control_port},
      {Setting("limits", "What the cloud allows."), &FakeSimulation::limits, limits},
      {Setting("quota-error", "Refuse what exceeds a limit; false reports limits without enforcing them."),
       &FakeSimulation::quota_error},
      {Setting("images", "Images that exist."), &FakeSimulation::images},
      {Setting("flavors", "Flavors; default: Fake Flavor and Unreal Flavor."), &FakeSimulation::flavors,
       flavor},
      {Setting("availability-zones", "Zones."), &FakeSimulation::availability_zones},
  };
  return settings;
}

// -1 in the file.
void LiftNegative(FakeLimits& limits) {
  for (double* limit : {&limits.cores, &limits.instances, &limits.ram, &limits.volumes, &limits.volume_gb}) {
    if (*limit < 0) *limit = std::numeric_limits<double>::infinity();
  }
}

Schema Texts() { return Schema::List(Schema::String()); }

// A setting of openstack providers that has no effect here.
Setting Ignored(const char* key, Schema schema) {
  return Setting(key, std::move(schema), "Of the openstack driver; without effect.");
}

const Bindings<FakeLabel>& FakeLabelSettings() {
  static const Bindings<FakeLabel> settings =
      Bindings<FakeLabel>(cloud::LabelSettings())
          .With({
              {Setting("min-ram", "The smallest flavor with at least this memory is used.").Unit("MiB"),
               &FakeLabel::min_ram},
              {Setting("flavor-name", "Flavor; with min-ram a part of its name."), &FakeLabel::flavor_name},
              {Setting("console-log", "Log the console of nodes that fail to start."),
               &FakeLabel::console_log},
              {Setting("boot-from-volume", "Boot from a new volume."), &FakeLabel::boot_from_volume},
              {Setting("volume-size", "Size of that volume.").Unit("GB"), &FakeLabel::volume_size},
              {Setting("instance-properties", "Metadata of the server."), &FakeLabel::instance_properties},
              {Setting("networks", "Networks instead of the pool's."), &FakeLabel::networks},
              Ignored("key-name", Schema::String()),
              Ignored("dynamic-instance-properties", Schema::OpenMap(Schema::Any())),
              Ignored("userdata", Schema::String()).Secret(),
          })
          .RequireOneOf({"min-ram", "flavor-name"})
          .RequireOneOf({"diskimage", "cloud-image"});
  return settings;
}

const Bindings<FakePool>& FakePoolSettings() {
  static const Bindings<FakePool> settings =
      Bindings<FakePool>(cloud::CloudPoolSettings())
          .With({
              {Setting("networks", "Networks of the nodes."), &FakePool::networks},
              Ignored("security-groups", Texts()),
              Ignored("auto-floating-ip", Schema::Bool()),
              Setting("labels", Schema::List(FakeLabelSettings().ToSchema()), "The labels offered here."),
          });
  return settings;
}

const Bindings<driver::ProviderDiskImage>& FakeDiskImageSettings() {
  static const Bindings<driver::ProviderDiskImage> settings =
      cloud::DiskImageSettings().With({Ignored("config-drive", Schema::Bool())});
  return settings;
}

const Bindings<cloud::CloudImage>& FakeCloudImageSettings() {
  static const Bindings<cloud::CloudImage> settings =
      cloud::CloudImageSettings().With({Ignored("config-drive", Schema::Bool())});
  return settings;
}

const Bindings<FakeConfig>& FakeSettings() {
  static const Bindings<FakeConfig> settings =
      Bindings<FakeConfig>{
          {Setting("cloud", "Any name; the nodes' cloud.").RequiredByValidator(), &FakeConfig::cloud},
          {Setting("region-name", "Region of the cloud."), &FakeConfig::region_name},
          cloud::BootTimeout(),
          cloud::LaunchTimeout(),
          cloud::LaunchRetries(),
          Setting("diskimages", Schema::List(FakeDiskImageSettings().ToSchema()),
                  "Images of the builder to upload here."),
          Setting("cloud-images", Schema::List(FakeCloudImageSettings().ToSchema()),
                  "Images that exist in the cloud."),
          Setting("pools", Schema::List(FakePoolSettings().ToSchema()), "Groups of nodes."),
          Ignored("rate", Schema::Number()),
          Ignored("clean-floating-ips", Schema::Bool()),
          Ignored("port-cleanup-interval", Schema::Int()),
          Ignored("delete-legacy-leaked", Schema::Bool()),
          Ignored("nodepool-id", Schema::String()),
          {Setting("simulation", "How the simulated cloud behaves."), &FakeConfig::simulation,
           SimulationSettings()},
      }
          .With(cloud::UploadSettings())
          .With(cloud::SettingsOfVersion2());
  return settings;
}

}  // namespace

const config::Schema& FakeSchema() {
  static const Schema schema = FakeSettings().ToSchema();
  return schema;
}

std::shared_ptr<const FakeConfig> LoadFakeConfig(const config::ProviderSection& section,
                                                 config::Config& config) {
  auto result = std::make_shared<FakeConfig>();
  Section provider = ReadProvider(section, FakeSettings(), *result);
  LiftNegative(result->simulation.limits);
  result->manages_images = true;
  result->image_format = result->simulation.image_format;
  cloud::ReadDiskImages(provider, FakeDiskImageSettings(), config, *result);
  result->cloud_images = cloud::ReadCloudImages(provider, FakeCloudImageSettings());
  for (const Section& entry : provider.Sections("pools")) {
    std::shared_ptr<FakePool> pool = ReadPool(entry, FakePoolSettings(), *result);
    FakeLabel defaults;
    defaults.networks = pool->networks;
    for (const Section& offer : entry.Sections("labels")) {
      pool->Offer(cloud::ReadLabel(offer, FakeLabelSettings(), *pool, result->cloud_images, config, *result,
                                   defaults));
    }
    result->pools[pool->name] = std::move(pool);
  }
  return result;
}

}  // namespace nodepool::drivers
