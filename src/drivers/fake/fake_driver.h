#pragma once

#include <functional>
#include <map>
#include <memory>

#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_driver.h"
#include "drivers/fake/fake_cloud.h"
#include "drivers/fake/fake_config.h"
#include "drivers/fake/fake_control.h"

namespace nodepool::drivers {

// The adapter to a simulated cloud: labels, images and flavors as in an openstack
// provider (drivers.md 10). Machines have no real address; the adapter knows their host
// keys, so no launcher tries to reach them (D-98).
class FakeAdapter : public driver::cloud::CloudAdapter<FakeConfig, FakeLabel> {
 public:
  // Called by Start(); null: nothing controls the cloud. The control may be shared with a successor; the last
  // adapter to stop stops it.
  using OpenControl = std::function<std::shared_ptr<FakeControl>()>;

  // `cloud` outlives the adapter.
  FakeAdapter(
      FakeCloud& cloud, std::shared_ptr<const driver::ProviderConfig> config,
      OpenControl open_control = [] { return nullptr; });

  void Start() override;
  Task<driver::cloud::Instance> Create(driver::cloud::MachineReport& machine,
                                       driver::cloud::CreateParameters parameters) override;
  Task<> Delete(driver::cloud::MachineReport& machine, boost::json::value external_id) override;
  Task<std::vector<driver::cloud::Instance>> ListInstances() override;
  Task<std::vector<driver::cloud::Resource>> ListResources() override;
  Task<> DeleteResource(driver::cloud::Resource resource) override;
  Task<std::vector<boost::json::value>> MissingMachines(std::vector<boost::json::value> ids) override {
    return NotListed(std::move(ids));
  }
  Task<driver::QuotaInformation> QuotaLimits() override;
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override;
  Task<std::vector<std::optional<std::string>>> AvailabilityZones() override;
  driver::Readiness LabelReady(const driver::LabelConfig& label) override;
  Task<std::string> UploadImage(ImageUpload upload) override;
  Task<> DeleteImage(std::string external_id) override;
  Task<std::vector<driver::ListedImage>> ListImages() override;
  Task<std::optional<std::string>> ConsoleLog(const driver::LabelConfig& label,
                                              boost::json::value external_id) override;
  Task<> Stop() override;

 private:
  const FakeFlavor& FlavorOf(const FakeLabel& label) const;
  FakeServerRequest RequestFor(const driver::cloud::CreateParameters& parameters) const;
  driver::cloud::Instance Describe(const FakeServer& server) const;

  FakeCloud& cloud_;
  OpenControl open_control_;
  std::shared_ptr<FakeControl> control_;
};

// Driver `fake`: real records, simulated machines (drivers.md 10).
class FakeDriver : public driver::cloud::CloudDriver {
 public:
  // Drivers that share `clouds` see the same machines and images.
  explicit FakeDriver(std::shared_ptr<FakeClouds> clouds = std::make_shared<FakeClouds>());

  std::string_view name() const override { return "fake"; }
  const config::Schema& ProviderSchema() const override;
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::cloud::Adapter> CreateAdapter(
      const driver::cloud::AdapterEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override;
  bool reports_host_keys() const override { return true; }

  FakeClouds& clouds() { return *clouds_; }

 private:
  std::shared_ptr<FakeControl> ControlOf(const ProviderName& provider, int port, FakeCloud& cloud,
                                         Loop& loop);

  std::shared_ptr<FakeClouds> clouds_;
  struct Open {
    int port;  // as configured
    std::weak_ptr<FakeControl> control;
  };
  std::map<ProviderName, Open> controls_;
};

}  // namespace nodepool::drivers
