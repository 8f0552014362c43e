#include "drivers/static/static_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml/yaml_reader.h"
#include "driver/cloud/adapter.h"

namespace nodepool::drivers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

config::Config WithLabels(std::initializer_list<const char*> names) {
  config::Config config;
  for (const char* name : names) config.labels[LabelName(name)].name = LabelName(name);
  return config;
}

std::shared_ptr<const StaticConfig> LoadStatic(const std::string& text) {
  config::ProviderSection section{ProviderName("p"), "static", *config::ParseYaml(text)};
  config::Config config = WithLabels({"a", "b"});
  return LoadStaticConfig(section, config);
}

std::string ErrorOf(const std::string& text) {
  try {
    LoadStatic(text);
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

const StaticPool& PoolOf(const StaticConfig& config) {
  return driver::cloud::As<StaticPool>(*config.pools.at(PoolName("main")));
}

TEST(StaticConfigTest, DefaultsOfANode) {
  auto config = LoadStatic("name: p\npools: [{name: main, nodes: [{name: h, labels: a}]}]");
  EXPECT_EQ(config->driver, "static");
  EXPECT_FALSE(config->manages_images);
  EXPECT_EQ(config->max_concurrency, -1);
  const StaticPool& pool = PoolOf(*config);
  EXPECT_EQ(pool.priority, 100);
  EXPECT_EQ(pool.max_servers, driver::kUnlimited);
  ASSERT_THAT(pool.nodes, ::testing::SizeIs(1));
  const StaticNode& node = pool.nodes[0];
  EXPECT_EQ(node.name, "h");
  EXPECT_THAT(node.labels, ElementsAre(LabelName("a")));
  EXPECT_EQ(node.connection.username, "zuul");
  EXPECT_EQ(node.connection.python_path, "auto");  // D-82
  EXPECT_EQ(node.connection.connection_port, 22);
  EXPECT_EQ(node.connection.connection_type, "ssh");
  EXPECT_EQ(node.timeout, std::chrono::seconds(5));
  EXPECT_TRUE(node.host_key_checking);
  EXPECT_EQ(node.max_parallel_jobs, 1);
  EXPECT_TRUE(pool.labels.contains(LabelName("a")));
}

// D-82: the port does not depend on the connection type.
TEST(StaticConfigTest, WinrmKeepsPort22) {
  auto config =
      LoadStatic("name: p\npools: [{name: main, nodes: [{name: h, labels: a, connection-type: winrm}]}]");
  EXPECT_EQ(PoolOf(*config).nodes[0].connection.connection_port, 22);
}

TEST(StaticConfigTest, ReadsEverySetting) {
  auto config = LoadStatic(R"(
name: p
priority: 5
max-concurrency: 0
pools:
- name: main
  max-servers: 0
  node-attributes: {k: [1, two]}
  nodes:
  - name: h
    labels: [a, b, a]
    ssh-port: 2222
    host-key: [ssh-rsa A, ssh-ed25519 B]
    host-key-checking: false
    max-parallel-jobs: 3
    shell-type: cmd
    timeout: 9
)");
  const StaticPool& pool = PoolOf(*config);
  EXPECT_EQ(pool.priority, 5);
  EXPECT_EQ(pool.max_servers, 0);
  EXPECT_EQ(pool.node_attributes.at("k").as_array().size(), 2u);
  EXPECT_THAT(pool.nodes[0].labels, ElementsAre(LabelName("a"), LabelName("b")));
  EXPECT_EQ(pool.nodes[0].connection.connection_port, 2222);
  EXPECT_THAT(pool.nodes[0].host_keys, ElementsAre("ssh-rsa A", "ssh-ed25519 B"));
  EXPECT_FALSE(pool.nodes[0].host_key_checking);
  EXPECT_EQ(pool.nodes[0].max_parallel_jobs, 3);
}

TEST(StaticConfigTest, ATextWithBlanksNamesSeveralLabels) {
  auto config = LoadStatic("name: p\npools: [{name: main, nodes: [{name: h, labels: ' a  b '}]}]");
  EXPECT_THAT(PoolOf(*config).nodes[0].labels, ElementsAre(LabelName("a"), LabelName("b")));
}

TEST(StaticConfigTest, JobsOfThisHostReachItsLoopbackInterface) {
  EXPECT_FALSE(
      LoadStatic("name: p\npools: [{name: main, nodes: [{name: h, labels: a}]}]")->reaches_this_host);
  EXPECT_TRUE(LoadStatic("name: p\npools: [{name: main, nodes: [{name: h, labels: a}, {name: localhost, "
                         "labels: a}]}]")
                  ->reaches_this_host);
}

TEST(StaticConfigTest, RefusesWhatCannotWork) {
  EXPECT_THAT(ErrorOf("name: p\npools: [{name: main, nodes: [{name: h, labels: c}]}]"),
              HasSubstr("provider p.pools[0].nodes[0].labels: label 'c' is not one of the top-level labels"));
  EXPECT_THAT(ErrorOf("name: p\npools: [{nodes: []}]"), HasSubstr("pools[0].name: is required"));
  EXPECT_THAT(ErrorOf("name: p\npools: [{name: m, nodes: [{labels: a}]}]"), HasSubstr("name: is required"));
  EXPECT_THAT(ErrorOf("name: p\npools: [{name: m, nodes: [{name: h}]}]"), HasSubstr("labels: is required"));
  EXPECT_THAT(ErrorOf("name: p\npools: 5"), HasSubstr("expected a list"));
}

// F-config-eq, CC-11, CC-12, S-config-stable
TEST(StaticConfigTest, TheFingerprintChangesWithTheSection) {
  auto one = LoadStatic("name: p\nx: 1\npools: []");
  EXPECT_EQ(one->fingerprint, LoadStatic("x: 1\npools: []\nname: p")->fingerprint);
  EXPECT_NE(one->fingerprint, LoadStatic("name: p\nx: 2\npools: []")->fingerprint);
  EXPECT_NE(one->fingerprint, LoadStatic("name: q\nx: 1\npools: []")->fingerprint);
  auto with_pool = [](const std::string& settings) {
    return LoadStatic("name: p\npools: [{name: m, nodes: [], " + settings + "}]")->fingerprint;
  };
  EXPECT_EQ(with_pool("max-servers: 1"), with_pool("max-servers: 1"));
  EXPECT_NE(with_pool("max-servers: 1"), with_pool("max-servers: 2"));
}

// drivers.md 7.1, the last line
TEST(StaticConfigTest, ValidationNeedsPools) {
  config::Schema schema = StaticSchema();
  EXPECT_THAT(config::Validate(*config::ParseYaml("cloud: x"), schema), ::testing::SizeIs(2));
}

}  // namespace
}  // namespace nodepool::drivers
