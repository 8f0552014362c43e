#include "drivers/openstack/openstack_driver.h"

#include "base/version.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/compute/machines.h"
#include "drivers/openstack/config/openstack_config.h"
#include "drivers/openstack/storage/images.h"
#include "net/http/http_client.h"

namespace nodepool::drivers {

OpenstackDriver::OpenstackDriver(std::optional<openstack::Variables> variables)
    : variables_(std::move(variables)) {}

const config::Schema& OpenstackDriver::ProviderSchema() const { return OpenstackSchema(); }

std::shared_ptr<const driver::ProviderConfig> OpenstackDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  if (!files_) files_ = openstack::ReadCloudFiles(variables_ ? *variables_ : openstack::ProcessVariables());
  return openstack::LoadOpenstackConfig(section, config, *files_);
}

std::unique_ptr<driver::cloud::Adapter> OpenstackDriver::CreateAdapter(
    const driver::cloud::AdapterEnvironment& environment,
    std::shared_ptr<const driver::ProviderConfig> config) {
  auto client = std::make_unique<net::CurlClient>(environment.loop, environment.blocking_pool,
                                                  "nodepool/" + std::string(Version()));
  return std::make_unique<openstack::OpenstackAdapter>(environment, config, std::move(client));
}

}  // namespace nodepool::drivers

namespace nodepool::drivers::openstack {

using driver::LabelConfig;
using driver::QuotaInformation;
using driver::Readiness;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::MachineReport;
using driver::cloud::Resource;

OpenstackAdapter::OpenstackAdapter(driver::cloud::AdapterEnvironment environment,
                                   const std::shared_ptr<const driver::ProviderConfig>& config,
                                   std::unique_ptr<net::HttpClient> client, Addressing::Probe probe)
    : CloudAdapter(config),
      environment_(std::move(environment)),
      http_(std::move(client)),
      cloud_(environment_, *config_, *http_, tasks_, logger_, std::move(probe)) {}

Task<Instance> OpenstackAdapter::Create(MachineReport& machine, CreateParameters parameters) {
  return CreateMachine(cloud_, machine, std::move(parameters));
}

Task<> OpenstackAdapter::Delete(MachineReport& machine, boost::json::value external_id) {
  if (!external_id.is_string()) co_return;
  std::string id(external_id.as_string());
  co_await DeleteMachine(cloud_, machine, std::move(id));
}

Task<std::vector<Instance>> OpenstackAdapter::ListInstances() { return ListMachines(cloud_, odd_servers_); }

Task<std::vector<Resource>> OpenstackAdapter::ListResources() {
  std::vector<Resource> resources = co_await ListMarked(cloud_, environment_.framework);
  housekeeping_.Start();
  co_return resources;
}

Task<> OpenstackAdapter::DeleteResource(Resource resource) {
  co_await DeleteMarked(cloud_.session, std::move(resource));
}

Task<std::vector<boost::json::value>> OpenstackAdapter::MissingMachines(std::vector<boost::json::value> ids) {
  return MissingServers(cloud_.servers, std::move(ids));
}

Task<std::vector<driver::cloud::AnnouncedEnd>> OpenstackAdapter::AnnouncedEnds(
    std::vector<boost::json::value> ids) {
  return EndedServers(cloud_.servers, std::move(ids));
}

Task<QuotaInformation> OpenstackAdapter::QuotaLimits() {
  QuotaInformation limits = co_await ReadLimits(cloud_.session, cloud_.lookups);
  // Called first when the provider starts, so that its labels are known before requests arrive.
  co_await cloud_.images.Refresh();
  co_return limits;
}

QuotaInformation OpenstackAdapter::QuotaForLabel(const LabelConfig& label) {
  const std::vector<Flavor>* flavors = cloud_.lookups.KnownFlavors();
  if (flavors == nullptr) {
    throw Error(Verdict::kRetry,
                "the flavors of cloud " + cloud_.session.cloud().name + " are not known yet");
  }
  const OpenstackLabel& wanted = Own(label);
  return NeedOf(ChooseFlavor(*flavors, wanted), wanted);
}

Task<std::vector<std::optional<std::string>>> OpenstackAdapter::AvailabilityZones() {
  return cloud_.lookups.Zones();
}

Task<> OpenstackAdapter::LookAgain() {
  co_await cloud_.images.LookAgain();
  co_await cloud_.lookups.RefreshFlavors();
}

Readiness OpenstackAdapter::LabelReady(const LabelConfig& label) {
  if (!label.cloud_image) return Readiness::kReady;
  const OpenstackCloudImage& image = config_->cloud_images.at(*label.cloud_image);
  return image.is_id ? Readiness::kReady : cloud_.images.ReadinessOf(image.external_name);
}

Task<std::vector<std::string>> OpenstackAdapter::FindFaults(const driver::ProviderConfig&) {
  return openstack::FindFaults(cloud_, odd_servers_);
}

Task<std::string> OpenstackAdapter::UploadImage(ImageUpload upload) {
  return openstack::UploadImage(cloud_.session, std::move(upload));
}

Task<> OpenstackAdapter::DeleteImage(std::string external_id) {
  co_await openstack::DeleteImage(cloud_.session, std::move(external_id));
}

Task<std::vector<driver::ListedImage>> OpenstackAdapter::ListImages() {
  return ListOwnedImages(cloud_.session);
}

Task<std::optional<std::string>> OpenstackAdapter::ConsoleLog(const LabelConfig& label,
                                                              boost::json::value external_id) {
  if (!Own(label).console_log || !external_id.is_string()) co_return std::nullopt;
  std::string id(external_id.as_string());
  Outcome<std::string> output = co_await Attempt(ConsoleOutput(cloud_.session, std::move(id)));
  if (!output && StatusOf(output) != 400) output.error().Rethrow();
  co_return output.value_or("");
}

Task<> OpenstackAdapter::Stop() { co_await tasks_.Stop(); }

}  // namespace nodepool::drivers::openstack
