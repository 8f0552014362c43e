#include "drivers/libvirt/libvirt_driver.h"

#include "driver/cloud/adapter.h"
#include "drivers/libvirt/host/libvirt_hypervisor.h"
#include "drivers/libvirt/machine/machines.h"
#include "drivers/libvirt/placement/site.h"
#include "drivers/libvirt/storage/images.h"
#include "drivers/libvirt_schema.h"

namespace nodepool::drivers::libvirt {

const config::Schema& Driver::ProviderSchema() const { return LibvirtSchema(); }

std::shared_ptr<const driver::ProviderConfig> Driver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return LoadLibvirtConfig(section, config);
}

std::unique_ptr<driver::cloud::Adapter> Driver::CreateAdapter(
    const driver::cloud::AdapterEnvironment& environment,
    std::shared_ptr<const driver::ProviderConfig> config) {
  Duration limit = driver::cloud::As<LibvirtConfig>(*config).call_timeout;
  auto make = [&environment, limit](const HostConfig& host, HypervisorListener& listener) {
    return std::make_unique<LibvirtHypervisor>(environment.loop, host, limit, listener);
  };
  return std::make_unique<LibvirtAdapter>(environment, config, make);
}

using driver::LabelConfig;
using driver::QuotaInformation;
using driver::Readiness;
using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::MachineReport;
using driver::cloud::Resource;

namespace {

std::optional<MachineId> IdIn(const boost::json::value& external_id) {
  return external_id.is_string() ? ParseMachineId(std::string(external_id.as_string())) : std::nullopt;
}

}  // namespace

LibvirtAdapter::LibvirtAdapter(driver::cloud::AdapterEnvironment environment,
                               const std::shared_ptr<const driver::ProviderConfig>& config,
                               const MakeHypervisor& make)
    : CloudAdapter(config), site_(std::move(environment), config_, make) {}

void LibvirtAdapter::Start() { site_.fetches.Start(); }

Task<Instance> LibvirtAdapter::Create(MachineReport& machine, CreateParameters parameters) {
  return CreateMachine(site_, machine, std::move(parameters));
}

// What is no id of ours names nothing.
Task<> LibvirtAdapter::Delete(MachineReport& machine, boost::json::value external_id) {
  machine.SetState("deleting the machine");
  std::optional<MachineId> id = IdIn(external_id);
  if (id) co_await DeleteMachine(site_, std::move(*id));
}

Task<std::vector<Instance>> LibvirtAdapter::ListInstances() { return ListMachines(site_); }

Task<std::vector<Resource>> LibvirtAdapter::ListResources() { return ListMarked(site_); }

Task<> LibvirtAdapter::DeleteResource(Resource resource) { return DeleteMarked(site_, std::move(resource)); }

Task<std::vector<boost::json::value>> LibvirtAdapter::MissingMachines(std::vector<boost::json::value> ids) {
  return libvirt::MissingMachines(site_.hosts, std::move(ids));
}

Task<QuotaInformation> LibvirtAdapter::QuotaLimits() {
  co_await site_.hosts.Connected();
  site_.fetches.Begin();
  bool has_changed = co_await site_.image_sizes.Refresh(site_.hosts.Usable());
  if (has_changed) site_.environment.framework.CapacityChanged();
  Need sum = co_await SumOfLimits(site_.hosts);
  co_return QuotaInformation::Limit(ToQuota(sum).resources());
}

QuotaInformation LibvirtAdapter::QuotaForLabel(const LabelConfig& label) {
  return ToQuota(NeedOf(*config_, site_.image_sizes, Own(label)));
}

Task<> LibvirtAdapter::LookAgain() { co_await site_.image_sizes.Refresh(site_.hosts.Usable()); }

Readiness LibvirtAdapter::LabelReady(const LabelConfig& label) {
  if (!label.cloud_image || config_->cloud_images.at(*label.cloud_image).path) return Readiness::kReady;
  if (!site_.image_sizes.is_known()) return Readiness::kUnknown;
  bool is_there =
      site_.image_sizes.Find(config_->cloud_images.at(*label.cloud_image).external_name).has_value();
  return is_there ? Readiness::kReady : Readiness::kNotReady;
}

Task<std::string> LibvirtAdapter::UploadImage(ImageUpload upload) {
  return libvirt::UploadImage(site_, std::move(upload));
}

Task<> LibvirtAdapter::DeleteImage(std::string external_id) {
  return libvirt::DeleteImage(site_.hosts, std::move(external_id));
}

Task<std::vector<driver::ListedImage>> LibvirtAdapter::ListImages() { return ListUploads(site_.hosts); }

Task<std::optional<std::string>> LibvirtAdapter::ConsoleLog(const LabelConfig&,
                                                            boost::json::value external_id) {
  std::optional<MachineId> id = IdIn(external_id);
  if (!id) co_return std::nullopt;
  std::string console = co_await ReadConsole(site_.hosts, config_->name.str(), std::move(*id));
  co_return console;
}

Task<> LibvirtAdapter::Stop() { return site_.Stop(); }

}  // namespace nodepool::drivers::libvirt
