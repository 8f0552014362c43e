#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/testing/test_environment.h"
#include "base/text.h"
#include "config/config_loader.h"
#include "config/main_schema.h"
#include "config/validator.h"
#include "driver/cloud/adapter.h"
#include "driver/loading/config_follower.h"
#include "drivers/fake/fake_driver.h"
#include "drivers/openstack/config/openstack_config.h"
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

// Production configurations, read by the real driver with clouds of the names that they use.

std::vector<std::string> ValidConfigs() {
  std::ifstream file(RealConfigPath("verdicts.json"));
  std::stringstream text;
  text << file.rdbuf();
  std::vector<std::string> names;
  boost::json::value verdicts = boost::json::parse(text.str());
  for (const auto& [name, verdict] : verdicts.as_object()) {
    if (verdict.at("exit").to_number<int>() == 0) names.emplace_back(name);
  }
  return names;
}

std::string TextAt(const config::ProviderSection& section, std::string_view key) {
  const config::Value* value = section.source.Find(key);
  return value == nullptr ? "" : value->text();
}

class RealOpenstackConfigs : public ::testing::Test {
 protected:
  // A clouds.yaml with every cloud that the sections name.
  std::string WriteClouds(const config::Config& config) {
    boost::json::object clouds;
    for (const config::ProviderSection& section : config.providers) {
      boost::json::object auth{{"auth_url", "https://cloud.example/v3"},
                               {"username", "ci"},
                               {"password", "secret"},
                               {"project_name", "ci"}};
      clouds[TextAt(section, "cloud")] = boost::json::object{{"auth", std::move(auth)}};
    }
    std::string path = folder_ + "/clouds.yaml";
    std::ofstream(path) << boost::json::object{{"clouds", std::move(clouds)}};
    return path;
  }

  testing::TemporaryFolder temporary_;
  std::string folder_ = temporary_.path();
};

TEST_F(RealOpenstackConfigs, AreReadByTheDriver) {
  int sections = 0;
  int labels = 0;
  for (const std::string& name : ValidConfigs()) {
    SCOPED_TRACE(name);
    Expected<config::Config> loaded = config::Load(RealConfigPath(name), {.drivers = RealSchema});
    ASSERT_TRUE(loaded) << loaded.error().message();
    OpenstackDriver driver(openstack::Variables{{"OS_CLIENT_CONFIG_FILE", WriteClouds(*loaded)}});
    std::vector<config::ProviderSection> all = loaded->providers;
    for (const config::ProviderSection& section : all) {
      if (section.driver != "openstack") continue;
      ++sections;
      auto read =
          driver::cloud::As<openstack::OpenstackProviderConfig>(driver.LoadProviderConfig(section, *loaded));
      EXPECT_EQ(read->cloud_config.name, TextAt(section, "cloud"));
      EXPECT_EQ(read->cloud_config.region, TextAt(section, "region-name"));
      for (const auto& [pool_name, pool] : read->pools) {
        for (const auto& [label_name, label] : pool->labels) {
          ++labels;
          const auto& known = driver::cloud::As<OpenstackLabel>(*label);
          EXPECT_NE(known.diskimage.has_value(), known.cloud_image.has_value()) << label_name.str();
          EXPECT_TRUE(!known.cloud_image || read->cloud_images.contains(*known.cloud_image));
          EXPECT_TRUE(known.min_ram > 0 || known.flavor_name.has_value()) << label_name.str();
        }
      }
    }
  }
  RecordProperty("sections", sections);
  EXPECT_GE(sections, 50);
  EXPECT_GE(labels, 200);
}

// The validator refuses an unknown key at every level of a section, as the Python one does; the daemons only
// warn (D-50).
TEST_F(RealOpenstackConfigs, UnknownKeysAreFoundAtEveryLevel) {
  const std::string whole = R"(
labels: [{name: small}]
diskimages: [{name: debian, elements: [vm]}]
providers:
  - name: cloud
    cloud: north
    AT_PROVIDER
    diskimages: [{name: debian AT_DISKIMAGE}]
    cloud-images: [{name: jammy AT_CLOUD_IMAGE}]
    pools:
      - name: main
        AT_POOL
        labels: [{name: small, diskimage: debian, min-ram: 1000 AT_LABEL}]
)";
  auto with = [&](const std::string& place) {
    std::string text = whole;
    for (const std::string level : {"AT_PROVIDER", "AT_DISKIMAGE", "AT_CLOUD_IMAGE", "AT_POOL", "AT_LABEL"}) {
      bool is_block = level == "AT_PROVIDER" || level == "AT_POOL";
      std::string key = level == place ? (is_block ? "no-such-key: 1" : ", no-such-key: 1") : "";
      text.replace(text.find(level), level.size(), key);
    }
    std::string path = folder_ + "/nodepool.yaml";
    std::ofstream(path) << text;
    return path;
  };
  EXPECT_EQ(config::ValidateFile(with(""), {.drivers = RealSchema}).exit_status(), 0);
  for (const std::string place : {"AT_PROVIDER", "AT_DISKIMAGE", "AT_CLOUD_IMAGE", "AT_POOL", "AT_LABEL"}) {
    SCOPED_TRACE(place);
    std::string path = with(place);
    config::ValidationReport report = config::ValidateFile(path, {.drivers = RealSchema});
    EXPECT_EQ(report.exit_status(), 1);
    ASSERT_FALSE(report.findings.empty());
    EXPECT_NE(report.findings.front().message.find("no-such-key"), std::string::npos);
    Expected<config::Config> loaded = config::Load(path, {.drivers = RealSchema});
    ASSERT_TRUE(loaded);
    OpenstackDriver driver(openstack::Variables{{"OS_CLIENT_CONFIG_FILE", WriteClouds(*loaded)}});
    config::ProviderSection section = loaded->providers.front();
    EXPECT_NE(driver.LoadProviderConfig(section, *loaded), nullptr);
    EXPECT_EQ(std::ranges::count_if(loaded->warnings,
                                    [](const std::string& warning) {
                                      return warning.find("no-such-key is not a known setting") !=
                                             std::string::npos;
                                    }),
              1);
  }
}

// O-sdk-reload: clouds.yaml is read again with the configuration, and a change of it is a change of the
// provider.
TEST_F(RealOpenstackConfigs, ChangedCredentialsAreAChange) {
  std::string path = folder_ + "/nodepool.yaml";
  std::ofstream(path) << "providers: [{name: p, cloud: north, pools: []}]";
  Expected<config::Config> loaded = config::Load(path, {.drivers = RealSchema});
  ASSERT_TRUE(loaded);
  config::ProviderSection section = loaded->providers.front();
  std::string clouds = WriteClouds(*loaded);
  OpenstackDriver driver(openstack::Variables{{"OS_CLIENT_CONFIG_FILE", clouds}});
  auto load = [&] {
    driver.Reset();
    return driver::cloud::As<openstack::OpenstackProviderConfig>(driver.LoadProviderConfig(section, *loaded));
  };
  auto before = load();
  EXPECT_EQ(load()->fingerprint, before->fingerprint);
  std::stringstream text;
  text << std::ifstream(clouds).rdbuf();
  std::string content = text.str();
  content.replace(content.find("secret"), 6, "changed");
  std::ofstream(clouds) << content;
  auto after = load();
  EXPECT_EQ(after->cloud_config.credentials.Get("password"), "changed");
  EXPECT_NE(after->fingerprint, before->fingerprint);
}

}  // namespace

}  // namespace nodepool::drivers
