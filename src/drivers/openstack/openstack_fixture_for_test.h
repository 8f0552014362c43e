#pragma once

#include <boost/json/parse.hpp>
#include <memory>
#include <string>

#include "driver/cloud/testing/provider_fixture.h"
#include "drivers/openstack/openstack_driver.h"
#include "drivers/openstack/testing/openstack_imposter.h"

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
      return std::make_unique<OpenstackAdapter>(environment, config, std::move(http));
    });
    imposter.ClearCalls();
  }

  boost::json::object LastServerRequest() {
    const auto* call = imposter.LastCall("POST", "/compute/v2.1/servers");
    return boost::json::parse(call->body).as_object().at("server").as_object();
  }

  std::string base = "http://cloud.example";
  testing::OpenstackImposter imposter{time.loop(), base};
};

}  // namespace nodepool::drivers::openstack
