#pragma once

#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_driver.h"
#include "drivers/libvirt/placement/site.h"

namespace nodepool::drivers::libvirt {

// Driver `libvirt`: machines on one's own hosts (driver-libvirt.md).
class Driver : public driver::cloud::CloudDriver {
 public:
  std::string_view name() const override { return "libvirt"; }
  const config::Schema& ProviderSchema() const override;
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::cloud::Adapter> CreateAdapter(
      const driver::cloud::AdapterEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override;
};

// The adapter to the hosts of one provider; each of its tasks is in a file of its own.
class LibvirtAdapter : public driver::cloud::CloudAdapter<LibvirtConfig, LibvirtLabel, LibvirtPool> {
 public:
  LibvirtAdapter(driver::cloud::AdapterEnvironment environment,
                 const std::shared_ptr<const driver::ProviderConfig>& config, const MakeHypervisor& make);

  void Start() override;
  Task<driver::cloud::Instance> Create(driver::cloud::MachineReport& machine,
                                       driver::cloud::CreateParameters parameters) override;
  Task<> Delete(driver::cloud::MachineReport& machine, boost::json::value external_id) override;
  Task<std::vector<driver::cloud::Instance>> ListInstances() override;
  Task<std::vector<driver::cloud::Resource>> ListResources() override;
  Task<> DeleteResource(driver::cloud::Resource resource) override;
  Task<std::vector<boost::json::value>> MissingMachines(std::vector<boost::json::value> ids) override;
  Task<driver::QuotaInformation> QuotaLimits() override;
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override;
  Task<> LookAgain() override;
  driver::Readiness LabelReady(const driver::LabelConfig& label) override;
  Task<std::string> UploadImage(ImageUpload upload) override;
  Task<> DeleteImage(std::string external_id) override;
  Task<std::vector<driver::ListedImage>> ListImages() override;
  Task<std::optional<std::string>> ConsoleLog(const driver::LabelConfig& label,
                                              boost::json::value external_id) override;
  Task<> Stop() override;

 private:
  Site site_;
};

}  // namespace nodepool::drivers::libvirt
