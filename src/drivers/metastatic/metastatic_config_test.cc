#include "drivers/metastatic/metastatic_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml/yaml_reader.h"
#include "drivers/metastatic/backing_nodes.h"

namespace nodepool::drivers {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

std::shared_ptr<const MetastaticConfig> LoadLabels(const std::string& labels, const std::string& pool = "") {
  config::Config config;
  for (const char* name : {"a", "b"}) config.labels[LabelName(name)].name = LabelName(name);
  std::string text = "name: p\npools: [{name: main, " + pool + "labels: [" + labels + "]}]";
  config::ProviderSection section{ProviderName("p"), "metastatic", *config::ParseYaml(text)};
  return LoadMetastaticConfig(section, config);
}

std::string ErrorOf(const std::string& labels) {
  try {
    LoadLabels(labels);
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(MetastaticConfigTest, Defaults) {
  auto config = LoadLabels("{name: a, backing-label: x}");
  EXPECT_EQ(config->boot_timeout, seconds(120));
  EXPECT_EQ(config->launch_timeout, seconds(3600));
  EXPECT_EQ(config->launch_retries, 3);
  EXPECT_FALSE(config->manages_images);
  const MetastaticLabel* label = config->FindLabel(LabelName("a"));
  ASSERT_NE(label, nullptr);
  EXPECT_EQ(label->backing_label, LabelName("x"));
  EXPECT_EQ(label->max_parallel_jobs, 1);
  EXPECT_EQ(label->grace_time, seconds(60));
  EXPECT_EQ(label->min_retention_time, seconds(0));
  EXPECT_EQ(label->max_age, std::nullopt);
  EXPECT_FALSE(label->host_key_checking);
  EXPECT_EQ(label->cloud_image, "unused");
  EXPECT_EQ(config->FindByBackingLabel(LabelName("x")), label);
  EXPECT_EQ(config->FindLabel(LabelName("b")), nullptr);
}

TEST(MetastaticConfigTest, LabelsOfOneBackingLabelMustAgree) {  // M-validate
  EXPECT_EQ(ErrorOf("{name: a, backing-label: x}, {name: b, backing-label: x}"), "no error");
  EXPECT_THAT(ErrorOf("{name: a, backing-label: x}, {name: b, backing-label: x, max-parallel-jobs: 2}"),
              HasSubstr("Multiple label definitions for the same backing label must be identical"));
  EXPECT_EQ(ErrorOf("{name: a, backing-label: x}, {name: b, backing-label: y, max-parallel-jobs: 2}"),
            "no error");
}

TEST(MetastaticConfigTest, MaxAgeIsNotLessThanTheRetentionTime) {
  EXPECT_THAT(ErrorOf("{name: a, backing-label: x, max-age: 10, min-retention-time: 11}"),
              HasSubstr("max-age"));
  EXPECT_EQ(ErrorOf("{name: a, backing-label: x, max-age: 11, min-retention-time: 11}"), "no error");
}

TEST(MetastaticConfigTest, HostKeyCheckingIsThePoolsUnlessTheLabelSetsIt) {
  EXPECT_TRUE(LoadLabels("{name: a, backing-label: x}", "host-key-checking: true, ")
                  ->FindLabel(LabelName("a"))
                  ->host_key_checking);
  EXPECT_TRUE(LoadLabels("{name: a, backing-label: x, host-key-checking: true}")
                  ->FindLabel(LabelName("a"))
                  ->host_key_checking);
}

TEST(BackingNodeTest, ComesBackFromUserData) {
  BackingNode node{LabelName("a"), 3, true, FromSeconds(1726600000.5), {{0, NodeId("1")}, {2, NodeId("2")}}};
  auto parsed = ParseBackingNode(ToUserData(node, "me"), "me");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->label, node.label);
  EXPECT_EQ(parsed->slots, 3);
  EXPECT_TRUE(parsed->has_failed);
  EXPECT_EQ(parsed->launched, node.launched);
  EXPECT_EQ(parsed->users, node.users);
  EXPECT_EQ(parsed->FreeSlot(), 1);
  EXPECT_EQ(parsed->SlotOf(NodeId("2")), 2);
  EXPECT_FALSE(ParseBackingNode(ToUserData(node, "me"), "you"));
}

TEST(BackingNodeTest, NonsenseIsNotARecordAndNumbersAreBounded) {
  for (const char* text : {"", "{", "[]", "7", "{\"owner\": 1}"})
    EXPECT_FALSE(ParseBackingNode(boost::json::value(text), "me")) << text;
  EXPECT_FALSE(ParseBackingNode(boost::json::object{{"owner", "me"}}, "me")) << "it is text in records";
  auto huge = ParseBackingNode(
      R"({"owner": "me", "slots": 1e300, "launched": 1e300, "users": {"x": 1, "-1": "2", "9": "3"}})", "me");
  ASSERT_TRUE(huge);
  EXPECT_EQ(huge->slots, 10'000);
  EXPECT_EQ(huge->users, (std::map<int, NodeId>{{9, NodeId("3")}}));
  auto empty = ParseBackingNode(R"({"owner": "me"})", "me");
  ASSERT_TRUE(empty);
  EXPECT_FALSE(empty->lists_users);
  EXPECT_EQ(empty->FreeSlot(), std::nullopt);
}

TEST(BackingNodeTest, WhenItIsReleased) {
  MetastaticLabel label;
  label.grace_time = seconds(60);
  label.min_retention_time = seconds(300);
  BackingNode node;
  node.launched = FromSeconds(1000);
  EXPECT_EQ(ReleaseTime(node, &label, FromSeconds(1100)), FromSeconds(1300));
  EXPECT_EQ(ReleaseTime(node, &label, FromSeconds(2000)), FromSeconds(2060));
  EXPECT_EQ(ReleaseTime(node, nullptr, FromSeconds(1100)), FromSeconds(1100)) << "its label is gone";
  label.max_age = seconds(310);
  EXPECT_EQ(ReleaseTime(node, &label, FromSeconds(1290)), FromSeconds(1310)) << "it is too old then";
  EXPECT_TRUE(MayServe(node, &label, FromSeconds(1310)));
  EXPECT_FALSE(MayServe(node, &label, FromSeconds(1311)));
  node.has_failed = true;
  EXPECT_FALSE(MayServe(node, &label, FromSeconds(1000)));
  EXPECT_EQ(ReleaseTime(node, &label, FromSeconds(1100)), FromSeconds(1100));
}

// drivers.md 8.1
TEST(MetastaticConfigTest, ABackingLabelThatNoPoolOffersIsAWarning) {
  config::Config config;
  config.path = "nodepool.yaml";
  for (const char* name : {"a", "b", "c"}) config.labels[LabelName(name)].name = LabelName(name);
  for (const char* text :
       {"pools: [{name: m, labels: [{name: x}]}]", "pools: [{name: m, nodes: [{labels: 'w y'}]}]",
        "pools: [{name: m, nodes: [{labels: [z]}]}]", "pools: 3"}) {
    config.providers.push_back({ProviderName("other"), "any", *config::ParseYaml(text)});
  }
  std::string text =
      "name: p\npools:\n- name: main\n  labels: [{name: a, backing-label: x}, {name: b, backing-label: y},\n"
      "   {name: c, backing-label: z}, {name: a, backing-label: nothing}]";
  config::ProviderSection section{ProviderName("p"), "metastatic", *config::ParseYaml(text)};
  LoadMetastaticConfig(section, config);
  EXPECT_THAT(config.warnings, ::testing::ElementsAre(
                                   ::testing::AllOf(::testing::StartsWith("nodepool.yaml: line 5, column "),
                                                    HasSubstr("no pool of this file offers label nothing"))));
}

}  // namespace
}  // namespace nodepool::drivers
