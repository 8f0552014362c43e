#pragma once

#include <memory>

#include "driver/cloud/adapter.h"
#include "drivers/openstack/api/cloud.h"
#include "drivers/openstack/network/housekeeping.h"

namespace nodepool::drivers::openstack {

// The adapter to an OpenStack cloud; each of its tasks is in a file of its own.
class OpenstackAdapter : public driver::cloud::Adapter {
 public:
  OpenstackAdapter(driver::ProviderEnvironment environment,
                   std::shared_ptr<const OpenstackProviderConfig> config,
                   std::unique_ptr<net::HttpClient> client);

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

  // Replaces how addresses are tried; for tests.
  void SetProbe(Cloud::Probe probe) { cloud_.probe = std::move(probe); }

 private:
  Cloud cloud_;
  Housekeeping housekeeping_;
};

}  // namespace nodepool::drivers::openstack
