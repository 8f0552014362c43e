#pragma once

#include <unistd.h>

#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "driver/cloud/cloud_driver.h"
#include "driver/cloud/testing/provider_fixture.h"
#include "drivers/openstack/openstack_driver.h"
#include "drivers/openstack/testing/openstack_imposter.h"

namespace nodepool::drivers {

// Driver openstack with an imposter. Its clouds.yaml has `vendor`, and `vhd`, the same cloud with another
// image format.
class ImposterDriver : public driver::cloud::CloudDriver {
 public:
  explicit ImposterDriver(testing::OpenstackImposter& imposter, driver::cloud::HostKeyScan scan = nullptr)
      : imposter_(imposter),
        scan_(std::move(scan)),
        clouds_yaml_(TemporaryFile()),
        real_({{{"OS_CLIENT_CONFIG_FILE", clouds_yaml_}}}) {
    std::string login =
        "private: true, auth: {auth_url: '" + imposter.base() +
        "/identity/v3', username: ci, password: secret, project_name: ci, user_domain_name: d, "
        "project_domain_name: d}";
    std::ofstream(clouds_yaml_) << "clouds: {vendor: {" << login << "}, vhd: {image_format: vhd, " << login
                                << "}}";
  }
  ~ImposterDriver() override { std::filesystem::remove(clouds_yaml_); }

  std::string_view name() const override { return real_.name(); }
  const config::Schema& ProviderSchema() const override { return real_.ProviderSchema(); }
  void Reset() override { real_.Reset(); }
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override {
    return real_.LoadProviderConfig(section, config);
  }
  std::unique_ptr<driver::cloud::Adapter> CreateAdapter(
      const driver::cloud::AdapterEnvironment& environment,
      std::shared_ptr<const driver::ProviderConfig> config) override {
    auto client = std::make_unique<testing::ImposterClient>(environment.loop, imposter_);
    return std::make_unique<openstack::OpenstackAdapter>(environment, config, std::move(client));
  }
  std::unique_ptr<driver::Provider> CreateProvider(
      driver::ProviderEnvironment environment,
      std::shared_ptr<const driver::ProviderConfig> config) override {
    auto make = [this, config](const driver::cloud::AdapterEnvironment& of_adapter) {
      return CreateAdapter(of_adapter, config);
    };
    return driver::cloud::MakeCloudProvider(std::move(environment), config, make, scan_);
  }

 private:
  static std::string TemporaryFile() {
    std::string path = (std::filesystem::temp_directory_path() / "nodepool-clouds-XXXXXX").string();
    ::close(::mkstemp(path.data()));
    return path;
  }

  testing::OpenstackImposter& imposter_;
  driver::cloud::HostKeyScan scan_;
  std::string clouds_yaml_;
  OpenstackDriver real_;
};

}  // namespace nodepool::drivers

namespace nodepool::drivers::openstack {

// A provider of driver openstack with an OpenStack imposter, in virtual time.
class OpenstackTest : public driver::cloud::CloudFixture<OpenstackProviderConfig, OpenstackLabel,
                                                         OpenstackPool, OpenstackAdapter> {
 protected:
  OpenstackTest() : CloudFixture("cloud", "openstack") {
    request_record.tenant_name = "tenant-1";
    label->cloud_image = "debian";
    label->flavor_name = "m1.small";
    pool->auto_floating_ip = false;
    config->cloud_images["debian"] = {{.name = "debian", .external_name = "debian"}};
    CloudConfig& cloud_config = config->cloud_config;
    cloud_config.name = "vendor";
    cloud_config.region = "RegionOne";
    cloud_config.interfaces = {"public"};
    cloud_config.is_private = true;
    cloud_config.credentials.type = "password";
    cloud_config.credentials.options = {{"auth_url", base + "/identity/v3"},
                                        {"username", "ci"},
                                        {"password", "secret"},
                                        {"project_name", "ci"}};
  }

  void Start() {
    StartProvider([this](const driver::cloud::AdapterEnvironment& environment) {
      auto http = std::make_unique<testing::ImposterClient>(time.loop(), imposter);
      return std::make_unique<OpenstackAdapter>(environment, config, std::move(http), probe);
    });
    imposter.ClearCalls();
  }

  boost::json::object LastServerRequest() {
    const auto* call = imposter.LastCall("POST", "/compute/v2.1/servers");
    return boost::json::parse(call->body).as_object().at("server").as_object();
  }

  Addressing::Probe probe;  // null: the adapter's own
  std::string base = "http://cloud.example";
  testing::OpenstackImposter imposter{time.loop(), base};
};

}  // namespace nodepool::drivers::openstack
