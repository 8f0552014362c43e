#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/text.h"
#include "config/config_loader.h"
#include "config/main_schema.h"
#include "config/validator.h"
#include "driver/loading/check_config.h"
#include "drivers/fake/fake_driver.h"
#include "drivers/openstack/openstack_driver.h"
#include "drivers/real_configs_for_test.h"
#include "drivers/static/static_driver.h"

namespace nodepool::drivers {
namespace {

using config::Finding;

// Production configurations from 2015 to 2026 with the Python validator's verdict on each
// (tests/data/configs/README.md).
struct RealConfig {
  std::string name;
  int exit = 0;
  std::string message;
};

std::vector<RealConfig> RealConfigs() {
  std::ifstream file(RealConfigPath("verdicts.json"));
  std::stringstream text;
  text << file.rdbuf();
  std::vector<RealConfig> configs;
  boost::json::value verdicts = boost::json::parse(text.str());
  for (const auto& [name, verdict] : verdicts.as_object()) {
    configs.push_back({std::string(name), static_cast<int>(verdict.at("exit").to_number<int>()),
                       boost::json::value_to<std::string>(verdict.at("message"))});
  }
  return configs;
}

void PrintTo(const RealConfig& config, std::ostream* stream) { *stream << config.name; }

std::size_t PoolsIn(const config::ProviderSection& section) {
  const config::Value* pools = section.source.Find("pools");
  return pools == nullptr ? 0 : pools->list().size();
}

class RealConfigTest : public ::testing::TestWithParam<RealConfig> {};

TEST_P(RealConfigTest, HasTheSameVerdictAsThePythonValidator) {
  const RealConfig& expected = GetParam();
  config::ValidationReport report =
      config::ValidateFile(RealConfigPath(expected.name), {.drivers = RealSchema});
  std::string first;
  for (const Finding& finding : report.findings) {
    if (finding.level == Finding::Level::kError && first.empty()) first = finding.message;
  }
  EXPECT_EQ(report.exit_status(), expected.exit) << first;
  EXPECT_TRUE(first.starts_with(expected.message))
      << "expected: " << expected.message << "\nfound:    " << first;
}

// Also with what the daemons say of it where neither clouds nor certificates are.
TEST_P(RealConfigTest, HasThisVerdictWhereItsCloudsAreNot) {
  const RealConfig& expected = GetParam();
  driver::Registry drivers;
  drivers.Add(std::make_unique<FakeDriver>());
  drivers.Add(std::make_unique<OpenstackDriver>(
      openstack::Variables{{"OS_CLIENT_CONFIG_FILE", "/no/such/clouds.yaml"}, {"HOME", "/no/such"}}));
  drivers.Add(std::make_unique<StaticDriver>());
  driver::ConfigCheck check = driver::CheckConfig(RealConfigPath(expected.name), drivers,
                                                  driver::LoadOptionsFor(drivers, RealSchema));
  std::string first;
  for (const Finding& finding : check.report.findings) {
    if (finding.level == Finding::Level::kError && first.empty()) first = finding.message;
  }
  EXPECT_EQ(check.report.exit_status(), expected.exit) << first;
}

// The daemons accept what the validator accepts (configuration.md 3).
TEST_P(RealConfigTest, LoadsWhenItIsValid) {
  const RealConfig& expected = GetParam();
  config::LoadOptions options{.drivers = RealSchema};
  Expected<config::Config> loaded = config::Load(RealConfigPath(expected.name), options);
  if (expected.exit != 0) return;  // must not crash, may load
  ASSERT_TRUE(loaded) << loaded.error().message();
  for (const config::ProviderSection& section : loaded->providers) {
    if (section.driver == "static") {
      EXPECT_EQ(LoadStaticConfig(section, *loaded)->name, section.name);
    } else if (section.driver == "openstack") {
      OpenstackConfig result;
      ReadOpenstackConfig(section, "qcow2", *loaded, result);
      EXPECT_EQ(result.name, section.name);
      EXPECT_LE(result.pools.size(), PoolsIn(section));
      EXPECT_EQ(result.pools.empty(), PoolsIn(section) == 0);
    } else if (section.driver == "kubernetes") {
      auto result = kubernetes::LoadKubernetesConfig(kubernetes::Kind::kKubernetes, section, *loaded);
      EXPECT_EQ(result->pools.size(), PoolsIn(section));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, RealConfigTest, ::testing::ValuesIn(RealConfigs()),
                         [](const ::testing::TestParamInfo<RealConfig>& info) {
                           return std::to_string(info.index);
                         });

TEST(RealConfigsTest, EveryFileHasAVerdict) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(RealConfigPath(""))) {
    if (entry.path().extension() == ".yaml") files.insert(entry.path().filename());
  }
  std::set<std::string> verdicts;
  for (const RealConfig& config : RealConfigs()) verdicts.insert(config.name);
  EXPECT_EQ(files, verdicts);
  EXPECT_GE(files.size(), 70u);
}

// For files from before version 3, the messages name what replaced their keys (D-52).
TEST(RealConfigsTest, HistoricKeysAreExplained) {
  config::ValidationReport report = config::ValidateFile(
      RealConfigPath("openstack__project-config__nodepool_nodepool.yaml__2016-12-17__c9d02242.yaml"),
      {.drivers = RealSchema});
  bool explained = false;
  for (const Finding& finding : report.findings) {
    explained |= finding.message.find("data['gearman-servers']") != std::string::npos &&
                 finding.message.find("since version 3") != std::string::npos;
  }
  EXPECT_TRUE(explained);
}

}  // namespace
}  // namespace nodepool::drivers
