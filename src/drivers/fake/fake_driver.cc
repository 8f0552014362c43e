#include "drivers/fake/fake_driver.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <filesystem>

#include "base/error.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "driver/provider_environment.h"
#include "drivers/fake/fake_config.h"

namespace nodepool::drivers {

using driver::LabelConfig;
using driver::QuotaInformation;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::MachineReport;
using driver::cloud::Resource;

namespace {

constexpr const char* kServer = "instance";
constexpr const char* kImage = "image";

bool HasNetwork(const FakeLabel& label, const char* network) {
  return std::ranges::find(label.networks, network) != label.networks.end();
}

QuotaInformation SizeOf(const FakeFlavor& flavor) {
  return QuotaInformation::Amount({{"cores", flavor.vcpus}, {"instances", 1}, {"ram", flavor.ram}});
}

// The server's addresses depend on its network (drivers.md 10.1).
void SetAddresses(const FakeLabel& label, Instance& instance) {
  instance.public_ipv4 = driver::kSimulatedAddress;
  instance.public_ipv6 = "";
  instance.private_ipv4 = driver::kSimulatedAddress;
  instance.interface_ip = driver::kSimulatedAddress;
  instance.host_id = "fake";
  if (HasNetwork(label, "fake-ipv6-network-name")) {
    instance.public_ipv6 = driver::kSimulatedIpv6;
    instance.interface_ip = driver::kSimulatedIpv6;
    instance.host_id = "fake_host_id";
  } else if (HasNetwork(label, "no-auto-ip-network-name")) {
    instance.public_ipv4 = "";
  }
}

std::vector<std::string> HostKeys(const LabelConfig& label) {
  bool is_ssh =
      label.connection.connection_type == "ssh" || label.connection.connection_type == "network_cli";
  if (!label.host_key_checking || !is_ssh) return {};
  return {"ssh-rsa FAKEKEY"};
}

std::string TextOf(const boost::json::value& value) {
  return value.is_string() ? std::string(value.as_string()) : boost::json::serialize(value);
}

std::uint64_t SizeOfFile(const std::string& path) {
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  std::uint64_t size = std::filesystem::is_regular_file(status) ? std::filesystem::file_size(path, error) : 0;
  if (error) throw Error(Verdict::kFail, path + ": " + error.message());
  return size;
}

}  // namespace

FakeAdapter::FakeAdapter(FakeCloud& cloud, std::shared_ptr<const driver::ProviderConfig> config,
                         OpenControl open_control)
    : CloudAdapter(std::move(config)), cloud_(cloud), open_control_(std::move(open_control)) {}

void FakeAdapter::Start() { control_ = open_control_(); }

Task<> FakeAdapter::Stop() {
  std::shared_ptr<FakeControl> control = std::exchange(control_, nullptr);
  if (control && control.use_count() == 1) co_await control->Stop();
}

Task<Instance> FakeAdapter::Create(MachineReport& machine, CreateParameters parameters) {
  const FakeLabel& label = Own(*parameters.label);
  machine.SetState("creating server");
  std::string id = cloud_.CreateServer(RequestFor(parameters));
  boost::json::value external_id(id);
  co_await machine.SetExternalId(std::move(external_id));
  machine.SetState("waiting for the server to become active");
  FakeServer server = co_await cloud_.WaitActive(id);
  Instance instance = Describe(server);
  if (label.boot_from_volume) {
    instance.quota.Add(
        QuotaInformation::Amount({{"volumes", 1}, {"volume-gb", static_cast<double>(label.volume_size)}}));
  }
  SetAddresses(label, instance);
  instance.host_keys = HostKeys(label);
  co_return instance;
}

Task<> FakeAdapter::Delete(MachineReport& machine, boost::json::value external_id) {
  if (!external_id.is_string()) co_return;
  machine.SetState("deleting server");
  std::string id(external_id.as_string());
  co_await cloud_.DeleteServer(std::move(id));
}

Task<std::vector<Instance>> FakeAdapter::ListInstances() {
  std::vector<Instance> instances;
  instances.reserve(cloud_.servers().size());
  for (const auto& [id, server] : cloud_.servers()) instances.push_back(Describe(server));
  co_return instances;
}

Task<std::vector<Resource>> FakeAdapter::ListResources() {
  std::vector<Resource> resources;
  for (const auto& [id, server] : cloud_.servers()) resources.push_back({kServer, id, server.metadata});
  for (const auto& [id, image] : cloud_.images()) resources.push_back({kImage, id, image.metadata});
  co_return resources;
}

Task<> FakeAdapter::DeleteResource(Resource resource) {
  if (resource.type == kImage) {
    co_await cloud_.DeleteImage(std::move(resource.id));
  } else {
    co_await cloud_.DeleteServer(std::move(resource.id));
  }
}

Task<QuotaInformation> FakeAdapter::QuotaLimits() {
  const FakeLimits& limits = cloud_.settings().limits;
  Resources resources = {{"cores", limits.cores},
                         {"instances", limits.instances},
                         {"ram", limits.ram},
                         {"volumes", limits.volumes},
                         {"volume-gb", limits.volume_gb}};
  co_return QuotaInformation::Limit(std::move(resources));
}

QuotaInformation FakeAdapter::QuotaForLabel(const LabelConfig& label) {
  const FakeLabel& wanted = Own(label);
  QuotaInformation need = SizeOf(FlavorOf(wanted));
  if (wanted.boot_from_volume) {
    need.Add(
        QuotaInformation::Amount({{"volumes", 1}, {"volume-gb", static_cast<double>(wanted.volume_size)}}));
  }
  return need;
}

Task<std::vector<std::optional<std::string>>> FakeAdapter::AvailabilityZones() {
  const auto& zones = cloud_.settings().availability_zones;
  co_return std::vector<std::optional<std::string>>(zones.begin(), zones.end());
}

driver::Readiness FakeAdapter::LabelReady(const LabelConfig& label) {
  if (!label.cloud_image) return driver::Readiness::kReady;
  auto image = config_->cloud_images.find(*label.cloud_image);
  bool is_there = image != config_->cloud_images.end() &&
                  (image->second.is_id || cloud_.HasImage(image->second.external_name));
  return is_there ? driver::Readiness::kReady : driver::Readiness::kNotReady;
}

Task<std::string> FakeAdapter::UploadImage(ImageUpload upload) {
  if (upload.image && upload.image->meta.contains("SHOULD_FAIL")) {
    throw Error(Verdict::kFail, "the simulated cloud refuses image " + upload.name);
  }
  FakeImage image;
  image.name = std::move(upload.name);
  for (const auto& [key, value] : upload.metadata) image.metadata.emplace(key, TextOf(value));
  image.file = {std::move(upload.format), SizeOfFile(upload.filename), std::move(upload.md5),
                std::move(upload.sha256)};
  co_return co_await cloud_.UploadImage(std::move(image), std::move(upload.announce),
                                        std::move(upload.report));
}

Task<> FakeAdapter::DeleteImage(std::string external_id) {
  co_await cloud_.DeleteImage(std::move(external_id));
}

Task<std::vector<driver::ListedImage>> FakeAdapter::ListImages() {
  std::vector<driver::ListedImage> images;
  for (const auto& [id, image] : cloud_.images()) {
    if (image.metadata.contains(driver::cloud::kBuildKey)) images.push_back({image.name, id, image.metadata});
  }
  co_return images;
}

Task<std::optional<std::string>> FakeAdapter::ConsoleLog(const LabelConfig& label, boost::json::value) {
  if (!Own(label).console_log) co_return std::nullopt;
  co_return cloud_.console();
}

// The smallest flavor with enough memory and, if given, the text in its name.
const FakeFlavor& FakeAdapter::FlavorOf(const FakeLabel& label) const {
  const FakeFlavor* best = nullptr;
  for (const FakeFlavor& flavor : cloud_.settings().flavors) {
    bool is_fit =
        flavor.ram >= label.min_ram && flavor.name.find(label.flavor_name.value_or("")) != std::string::npos;
    if (is_fit && (best == nullptr || flavor.ram < best->ram)) best = &flavor;
  }
  if (best == nullptr) {
    throw Error(Verdict::kInvalid, "the simulated cloud of provider " + config_->name.str() +
                                       " has no flavor for label " + label.name.str());
  }
  return *best;
}

FakeServerRequest FakeAdapter::RequestFor(const CreateParameters& parameters) const {
  const FakeLabel& label = Own(*parameters.label);
  FakeServerRequest request;
  request.name = parameters.hostname;
  request.flavor = FlavorOf(label).name;
  request.zone = parameters.az;
  request.metadata = parameters.metadata;
  for (const auto& [key, value] : label.instance_properties) {
    request.metadata.emplace(key, TextOf(value));
  }
  if (parameters.image_external_id) {
    request.image = parameters.image_external_id;
  } else if (label.cloud_image) {
    auto image = config_->cloud_images.find(*label.cloud_image);
    if (image != config_->cloud_images.end() && !image->second.is_id)
      request.image = image->second.external_name;
  }
  auto should_fail = label.instance_properties.find("SHOULD_FAIL");
  request.should_fail = should_fail != label.instance_properties.end() && should_fail->value() == "true";
  return request;
}

Instance FakeAdapter::Describe(const FakeServer& server) const {
  Instance instance;
  instance.external_id = server.id;
  instance.name = server.name;
  instance.metadata = server.metadata;
  instance.cloud = config_->cloud;
  instance.region = config_->region_name;
  instance.az = server.zone;
  instance.quota = SizeOf(server.flavor);
  return instance;
}

FakeDriver::FakeDriver(std::shared_ptr<FakeClouds> clouds) : clouds_(std::move(clouds)) {}

const config::Schema& FakeDriver::ProviderSchema() const { return FakeSchema(); }

std::shared_ptr<const driver::ProviderConfig> FakeDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return LoadFakeConfig(section, config);
}

std::unique_ptr<driver::cloud::Adapter> FakeDriver::CreateAdapter(
    const driver::cloud::AdapterEnvironment& environment,
    std::shared_ptr<const driver::ProviderConfig> config) {
  const FakeSimulation& simulation = driver::cloud::As<FakeConfig>(*config).simulation;
  FakeCloud& cloud = clouds_->Of(config->name, environment.loop, environment.random, simulation);
  FakeAdapter::OpenControl open = [] { return nullptr; };
  if (simulation.control_port) {
    open = [this, &cloud, &loop = environment.loop, provider = config->name,
            port = *simulation.control_port] { return ControlOf(provider, port, cloud, loop); };
  }
  return std::make_unique<FakeAdapter>(cloud, std::move(config), std::move(open));
}

// One port for all generations of a provider. Another process with the same configuration may already use it.
std::shared_ptr<FakeControl> FakeDriver::ControlOf(const ProviderName& provider, int port, FakeCloud& cloud,
                                                   Loop& loop) {
  Open& open = controls_[provider];
  std::shared_ptr<FakeControl> control = open.port == port ? open.control.lock() : nullptr;
  if (control) return control;
  log::Logger logger("nodepool.driver.fake");
  try {
    control = std::make_shared<FakeControl>(loop, cloud, port);
    logger.Info("The simulated cloud of provider {} is controlled at port {}", provider, control->port());
  } catch (const Error&) {
    logger.Info("The simulated cloud of provider {} cannot be controlled here: control-port {} is taken",
                provider, port);
  }
  open = {port, control};
  return control;
}

}  // namespace nodepool::drivers
