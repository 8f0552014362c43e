#pragma once

#include <memory>

#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/cloud/leaks/leak_search.h"
#include "drivers/aws/api/services.h"
#include "drivers/aws/compute/machines.h"
#include "drivers/aws/compute/quota.h"
#include "drivers/aws/images/images.h"

namespace nodepool::drivers::aws {

// The adapter to an account of AWS in one region; each of its tasks is in a file of its own.
class AwsAdapter : public driver::cloud::CloudAdapter<AwsConfig, AwsLabel, AwsPool> {
 public:
  AwsAdapter(driver::cloud::AdapterEnvironment environment,
             const std::shared_ptr<const driver::ProviderConfig>& config, Account account,
             Variables variables, std::unique_ptr<net::HttpClient> client);

  void Start() override;
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
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override;
  Task<std::string> UploadImage(ImageUpload upload) override;
  Task<> DeleteImage(std::string external_id) override;
  Task<std::vector<driver::ListedImage>> ListImages() override;
  Task<> Stop() override;

 private:
  // Adds one kind to what is searched for leaks.
  Task<> Append(const char* what, Task<std::vector<driver::cloud::Resource>> list,
                std::vector<driver::cloud::Resource>& resources);

  driver::cloud::AdapterEnvironment environment_;
  log::Logger logger_{"nodepool.AwsAdapter." + config_->name.value};
  Services services_;
  TaskGroup tasks_{environment_.loop, logger_};
  AccountLimits limits_{environment_.loop, services_.quotas(), logger_};
  AwsCloud cloud_{environment_, *config_, services_.region(), services_.ec2(), tasks_, logger_};
  ImageContext images_{environment_, *config_, services_, logger_};
  driver::cloud::RareSweeps rare_sweeps_;
};

}  // namespace nodepool::drivers::aws

namespace nodepool::drivers {

// Driver `aws`: instances of EC2. The files of the account's user are read when a provider starts, and again
// whenever its credentials are fetched.
class AwsDriver : public driver::cloud::HttpDriver {
 public:
  // `variables` replaces the environment of the process.
  explicit AwsDriver(std::optional<process::Environment> variables = std::nullopt);
};

}  // namespace nodepool::drivers
