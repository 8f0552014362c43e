#include "drivers/fake/fake_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "config/schema/section.h"
#include "config/yaml/yaml_reader.h"

namespace nodepool::drivers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::shared_ptr<const FakeConfig> LoadFake(const std::string& text) {
  config::Config config;
  config.labels[LabelName("l")].name = LabelName("l");
  config::ProviderSection section{ProviderName("fake"), "fake", *config::ParseYaml(text)};
  return LoadFakeConfig(section, config);
}

// drivers.md 10.1
TEST(FakeConfigTest, DefaultsOfTheSimulatedCloud) {
  auto config = LoadFake("name: fake\ncloud: any");
  const FakeSimulation& simulation = config->simulation;
  EXPECT_EQ(config->cloud, "any");
  EXPECT_EQ(simulation.create_latency, std::chrono::milliseconds(100));
  EXPECT_EQ(simulation.limits.cores, 100);
  EXPECT_EQ(simulation.limits.instances, 20);
  EXPECT_EQ(simulation.limits.ram, 1'000'000);
  EXPECT_THAT(simulation.images, ElementsAre("Fake Precise"));
  ASSERT_THAT(simulation.flavors, ::testing::SizeIs(2));
  EXPECT_EQ(simulation.flavors[1].name, "Unreal Flavor");
  EXPECT_EQ(simulation.flavors[1].ram, 8192);
  EXPECT_THAT(simulation.availability_zones, ElementsAre("az1", "az2"));
  EXPECT_EQ(simulation.seed, std::nullopt);
}

// D-81
TEST(FakeConfigTest, ReadsTheSettings) {
  auto config = LoadFake(R"(
name: fake
pools: [{name: main, labels: [{name: l, cloud-image: c, min-ram: 1}]}]
cloud-images: [{name: c}]
simulation:
  create-latency: 0
  delete-latency: 1.5
  create-failure-rate: 0.25
  delete-failure-rate: 1
  upload-failure-rate: 0.5
  seed: 42
  limits: {cores: -1, instances: 3}
  quota-error: false
  images: [c]
  flavors: [{name: small, ram: 1024, vcpus: 1}]
  availability-zones: [z]
)");
  const FakeSimulation& simulation = config->simulation;
  EXPECT_EQ(simulation.create_latency, Duration::zero());
  EXPECT_EQ(simulation.delete_latency, std::chrono::milliseconds(1500));
  EXPECT_EQ(simulation.create_failure_rate, 0.25);
  EXPECT_EQ(simulation.delete_failure_rate, 1);
  EXPECT_EQ(simulation.upload_failure_rate, 0.5);
  EXPECT_EQ(simulation.seed, 42u);
  EXPECT_EQ(simulation.limits.cores, std::numeric_limits<double>::infinity());
  EXPECT_EQ(simulation.limits.instances, 3);
  EXPECT_EQ(simulation.limits.volumes, 100);
  EXPECT_FALSE(simulation.quota_error);
  EXPECT_EQ(simulation.flavors[0].vcpus, 1);
  EXPECT_TRUE(config->pools.at(PoolName("main"))->labels.contains(LabelName("l")));
  config::Schema schema = config::WithCommonSettings(FakeSchema());
  EXPECT_THAT(config::Validate(*config::ParseYaml("{name: fake, cloud: x, simulation: {seed: 1}}"), schema),
              IsEmpty());
}

TEST(FakeConfigTest, RefusesImpossibleNumbers) {
  auto error = [](const std::string& text) {
    try {
      LoadFake("name: fake\nsimulation: " + text);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  EXPECT_THAT(error("{create-failure-rate: 2}"),
              HasSubstr("simulation.create-failure-rate: expected a number from 0 to 1"));
  EXPECT_THAT(error("{create-latency: -1}"), HasSubstr("expected a number from 0"));
  EXPECT_THAT(error("{flavors: [{ram: 1}]}"), HasSubstr("name: is required"));
  EXPECT_THAT(error("5"), HasSubstr("expected a mapping"));
}

}  // namespace
}  // namespace nodepool::drivers
