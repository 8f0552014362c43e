#include "drivers/fake/fake_config.h"

#include <limits>

#include "config/section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers {

using config::Schema;
using config::Section;
using config::Setting;

namespace {

Schema BoundedNumber(double least, double most) {
  return Schema::OneOf({Schema::Int().Between(least, most), Schema::Float().Between(least, most)});
}

Schema SimulationSchema() {
  constexpr double kLongest = 86400;
  constexpr double kMost = 1e12;
  Schema latency = BoundedNumber(0, kLongest);
  Schema rate = BoundedNumber(0, 1);
  Schema limit = BoundedNumber(-1, kMost);
  Schema limits = Schema::Map({
      Setting("cores", limit, "Virtual CPUs; -1: no limit.").Default(100),
      Setting("instances", limit, "Servers; -1: no limit.").Default(20),
      Setting("ram", limit, "Memory; -1: no limit.").Default(1'000'000).Unit("MiB"),
      Setting("volumes", limit, "Volumes; -1: no limit.").Default(100),
      Setting("volume-gb", limit, "Volume space; -1: no limit.").Default(1'000'000).Unit("GB"),
  });
  Schema flavor = Schema::Map({
      Setting("name", Schema::String(), "Name of the flavor.").Required(),
      Setting("ram", BoundedNumber(1, kMost), "Memory.").Default(8192).Unit("MiB"),
      Setting("vcpus", BoundedNumber(1, kMost), "Virtual CPUs.").Default(4),
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
              "Port on loopback through which tests look into the cloud and disturb it; default: none."),
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

}  // namespace

const Schema& FakeSchema() {
  static const Schema schema =
      OpenstackSchema().With({Setting("simulation", SimulationSchema(), "How the simulated cloud behaves.")});
  return schema;
}

std::shared_ptr<const FakeConfig> LoadFakeConfig(const config::ProviderSection& section,
                                                 config::Config& config) {
  auto result = std::make_shared<FakeConfig>();
  Section simulation = OpenProvider(section, FakeSchema()).Sub("simulation");
  ReadOpenstackConfig(section, FakeSchema(), simulation.Text("image-format"), config, *result);
  result->simulation = ReadSimulation(simulation);
  return result;
}

}  // namespace nodepool::drivers
