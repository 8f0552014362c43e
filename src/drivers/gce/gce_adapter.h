#pragma once

#include <memory>

#include "driver/cloud/adapter.h"
#include "drivers/gce/gce_cloud.h"

namespace nodepool::drivers::gce {

// The adapter to a project of Google Compute Engine in one region; each of its tasks is in a file of its own.
class GceAdapter : public driver::cloud::Adapter {
 public:
  GceAdapter(driver::cloud::AdapterEnvironment environment, std::shared_ptr<const GceConfig> config,
             Endpoints endpoints, Variables variables, std::unique_ptr<net::HttpClient> client);

  Task<driver::cloud::Instance> Create(driver::cloud::MachineReport& machine,
                                       driver::cloud::CreateParameters parameters) override;
  std::vector<std::string> Candidates(const driver::LabelConfig& label,
                                      const driver::PoolConfig& pool) override;
  Task<> Delete(driver::cloud::MachineReport& machine, boost::json::value external_id) override;
  Task<std::vector<driver::cloud::Instance>> ListInstances() override;
  Task<std::vector<driver::cloud::Resource>> ListResources() override;
  Task<> DeleteResource(driver::cloud::Resource resource) override;
  Task<std::vector<boost::json::value>> MissingMachines(std::vector<boost::json::value> ids) override;
  Task<std::vector<driver::cloud::AnnouncedEnd>> AnnouncedEnds(std::vector<boost::json::value> ids) override;
  Task<std::optional<std::string>> ConsoleLog(const driver::LabelConfig& label,
                                              boost::json::value external_id) override;
  Task<driver::QuotaInformation> QuotaLimits() override;
  std::optional<driver::QuotaInformation> UsedByOthers() override;
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override;
  Task<std::vector<std::string>> FindFaults(const driver::ProviderConfig& config) override;
  Task<std::string> UploadImage(ImageUpload upload) override;
  Task<> DeleteImage(std::string external_id) override;
  Task<std::vector<driver::ListedImage>> ListImages() override;
  Task<> Stop() override;

 private:
  GceCloud cloud_;
};

}  // namespace nodepool::drivers::gce
