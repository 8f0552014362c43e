#pragma once

#include <map>
#include <memory>
#include <string>

#include "driver/cloud/testing/provider_fixture.h"
#include "drivers/gce/gce_driver.h"
#include "drivers/gce/testing/gce_imposter.h"

namespace nodepool::drivers::gce {

// A provider of driver gce with an imposter of Google Cloud, in virtual time.
class GceTest : public driver::cloud::CloudFixture<GceConfig, GceLabel, GcePool, GceAdapter> {
 protected:
  GceTest() : CloudFixture("gce", "gce") {
    label->cloud_image = "debian";
    label->instance_types = {"e2-medium"};
    config->project = "p";
    config->region = "us-central1";
    config->zone = "us-central1-a";
    config->zones = {"us-central1-a"};
    config->rate = 0;
    GceCloudImage& image = config->cloud_images["debian"];
    image.name = "debian";
    image.project = "debian-cloud";
    image.family = "debian-12";
    image.key = "ssh-ed25519 AAAA";
    image.connection.username = "zuul";
  }

  void TearDown() override {
    google.is_silent = false;
    CloudFixture::TearDown();
  }

  void Start() {
    Variables variables{{"GCE_ENDPOINT", "http://google"}, {"GCE_METADATA_HOST", "metadata"}};
    StartProvider([&](const driver::cloud::AdapterEnvironment& environment) {
      auto http = std::make_unique<testing::GceImposterClient>(google);
      return std::make_unique<GceAdapter>(environment, config, variables, std::move(http));
    });
    google.calls.clear();
  }

  // An instance that is there already.
  testing::GceImposter::Instance& AddInstance(const std::string& name,
                                              const std::map<std::string, std::string>& metadata,
                                              const std::string& zone = "us-central1-a") {
    boost::json::array items;
    boost::json::object labels;
    for (const auto& [key, value] : metadata) {
      items.push_back(boost::json::object{{"key", key}, {"value", value}});
      labels[key] = value;
    }
    testing::GceImposter::Instance& made = google.instances[zone + "/" + name];
    made.body = {{"name", name},
                 {"machineType", "zones/" + zone + "/machineTypes/e2-medium"},
                 {"metadata", boost::json::object{{"items", std::move(items)}}},
                 {"labels", std::move(labels)}};
    made.number = "77" + std::to_string(google.instances.size());
    made.zone = zone;
    return made;
  }
  static std::map<std::string, std::string> Marks(const std::string& node,
                                                  const std::string& provider = "gce") {
    return {{"nodepool_node_id", node}, {"nodepool_pool_name", "main"}, {"nodepool_provider_name", provider}};
  }
  // Lists that were read before do not count any more.
  void PassListAge() { time.Advance(InstanceLists::kAge + std::chrono::seconds(1)); }
  void FailNext(std::string action, int status, std::string reason, int times = 1,
                std::string message = "no") {
    google.faults.push_back({std::move(action), status, std::move(reason), std::move(message), times});
  }

  testing::GceImposter google{time.loop()};
};

}  // namespace nodepool::drivers::gce
