#pragma once

#include <memory>
#include <optional>

#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_driver.h"
#include "drivers/openstack/api/cloud.h"
#include "drivers/openstack/compute/machines.h"
#include "drivers/openstack/config/cloud_files.h"
#include "drivers/openstack/network/housekeeping.h"

namespace nodepool::drivers {

// Driver `openstack`. clouds.yaml and related files are read at each load of the configuration
// (driver-openstack.md 3.1).
class OpenstackDriver : public driver::cloud::CloudDriver {
 public:
  // `variables` replaces the environment of the process.
  explicit OpenstackDriver(std::optional<openstack::Variables> variables = std::nullopt);

  std::string_view name() const override { return "openstack"; }
  const config::Schema& ProviderSchema() const override;
  void Reset() override { files_.reset(); }
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::cloud::Adapter> CreateAdapter(
      const driver::cloud::AdapterEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override;

 private:
  std::optional<openstack::Variables> variables_;
  std::optional<openstack::CloudFiles> files_;  // of the load under way
};

}  // namespace nodepool::drivers

namespace nodepool::drivers::openstack {

// The adapter to an OpenStack cloud; each of its tasks is in a file of its own.
class OpenstackAdapter
    : public driver::cloud::CloudAdapter<OpenstackProviderConfig, OpenstackLabel, OpenstackPool> {
 public:
  // `probe`: how addresses are tried; null: by connections.
  OpenstackAdapter(driver::cloud::AdapterEnvironment environment,
                   const std::shared_ptr<const driver::ProviderConfig>& config,
                   std::unique_ptr<net::HttpClient> client, Addressing::Probe probe = nullptr);

  Task<driver::cloud::Instance> Create(driver::cloud::MachineReport& machine,
                                       driver::cloud::CreateParameters parameters) override;
  Task<> Delete(driver::cloud::MachineReport& machine, boost::json::value external_id) override;
  Task<std::vector<driver::cloud::Instance>> ListInstances() override;
  Task<std::vector<driver::cloud::Resource>> ListResources() override;
  Task<> DeleteResource(driver::cloud::Resource resource) override;
  Task<std::vector<boost::json::value>> MissingMachines(std::vector<boost::json::value> ids) override;
  Task<std::vector<driver::cloud::AnnouncedEnd>> AnnouncedEnds(std::vector<boost::json::value> ids) override;
  Task<driver::QuotaInformation> QuotaLimits() override;
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override;
  Task<std::vector<std::optional<std::string>>> AvailabilityZones() override;
  Task<> LookAgain() override;
  driver::Readiness LabelReady(const driver::LabelConfig& label) override;
  Task<std::vector<std::string>> FindFaults(const driver::ProviderConfig& config) override;
  Task<std::string> UploadImage(ImageUpload upload) override;
  Task<> DeleteImage(std::string external_id) override;
  Task<std::vector<driver::ListedImage>> ListImages() override;
  Task<std::optional<std::string>> ConsoleLog(const driver::LabelConfig& label,
                                              boost::json::value external_id) override;
  Task<> Stop() override;

 private:
  driver::cloud::AdapterEnvironment environment_;
  std::unique_ptr<net::HttpClient> http_;
  log::Logger logger_{"nodepool.OpenStackAdapter." + config_->name.value};
  TaskGroup tasks_{environment_.loop, logger_};
  Cloud cloud_;
  OddServers odd_servers_{logger_, config_->cloud_config.name};
  Housekeeping housekeeping_{*config_, cloud_.session, tasks_, environment_.observer, logger_};
};

}  // namespace nodepool::drivers::openstack
