#pragma once

#include <map>
#include <memory>

#include "driver/cloud/cloud_driver.h"
#include "drivers/fake/fake_cloud.h"
#include "drivers/fake/fake_control.h"

namespace nodepool::drivers {

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
