#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "driver/cloud/testing/provider_fixture.h"
#include "drivers/aws/aws_driver.h"
#include "drivers/aws/testing/ec2_imposter.h"

namespace nodepool::drivers::aws {

// A provider of driver aws with an EC2 imposter, in virtual time.
class AwsTest : public driver::cloud::CloudFixture<AwsConfig, AwsLabel, AwsPool, AwsAdapter> {
 protected:
  AwsTest() : CloudFixture("ec2", "aws") {
    label->cloud_image = "debian";
    label->instance_types = {"t3.medium"};
    label->key_name = "zuul";
    config->rate = 0;
    AwsCloudImage& image = config->cloud_images["debian"];
    image.name = "debian";
    image.external_name = "ami-1";
    image.is_id = true;
  }

  void Start() {
    Variables variables{{"AWS_ACCESS_KEY_ID", "KEY"},
                        {"AWS_SECRET_ACCESS_KEY", "top-secret"},
                        {"AWS_CONFIG_FILE", "/nonexistent"},
                        {"AWS_SHARED_CREDENTIALS_FILE", "/nonexistent"}};
    Account account = ResolveAccount({}, variables, "us-west-2", std::nullopt);
    StartProvider([&](const driver::cloud::AdapterEnvironment& environment) {
      auto http = std::make_unique<testing::Ec2ImposterClient>(ec2);
      return std::make_unique<AwsAdapter>(environment, config, account, variables, std::move(http));
    });
    ec2.calls.clear();
  }

  // An instance that is there already.
  std::string AddInstance(std::map<std::string, std::string> tags, std::string type = "t3.medium") {
    std::string id = "i-foreign" + std::to_string(ec2.instances.size());
    ec2.instances[id].type = std::move(type);
    ec2.instances[id].tags = std::move(tags);
    return id;
  }
  // The number of instances that nobody has ended.
  int Living() {
    SteadyTime now = time.loop().SteadyNow();
    return static_cast<int>(
        std::ranges::count_if(ec2.instances, [now](const auto& one) { return now < one.second.ending; }));
  }
  void FailNext(std::string action, int status, std::string code, int times = 1, std::string message = "no") {
    ec2.faults.push_back({std::move(action), status, std::move(code), std::move(message), times});
  }

  testing::Ec2Imposter ec2{time.loop()};
};

}  // namespace nodepool::drivers::aws
