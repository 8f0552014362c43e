#include "model/component.h"

#include <gtest/gtest.h>

namespace nodepool {
namespace {

// Keys are sorted (coordination.md 4.8).
constexpr std::string_view kPool =
    R"({"hostname": "np01", "id": "np01.example.org-PoolWorker.cloud-main-9d1c", "kind": "pool", )"
    R"("model_api": 0, "name": "main", "paused": false, "priority": 100, )"
    R"("provider_name": "cloud", "state": "running", "supported_labels": ["small"], "version": "11.0.0"})";

TEST(Component, APoolReadsAndWritesWhatPythonWrites) {  // coordination.17.2
  Expected<Component> pool = ParseComponent(ComponentKind::kPool, kPool);
  ASSERT_TRUE(pool) << pool.error().message();
  EXPECT_EQ(pool->id, LauncherId("np01.example.org-PoolWorker.cloud-main-9d1c"));
  EXPECT_EQ(pool->name, PoolName("main"));
  EXPECT_EQ(pool->state, ComponentState::kRunning);
  EXPECT_EQ(ToJson(*pool), kPool);
}

TEST(Component, ALauncherHasNoPoolKeys) {
  Component launcher;
  launcher.hostname = "np01";
  EXPECT_EQ(
      ToJson(launcher),
      R"({"hostname": "np01", "kind": "launcher", "model_api": 0, "state": "stopped", "version": null})");
}

TEST(Component, MissingKeysReadAsInitialValues) {
  Expected<Component> pool = ParseComponent(ComponentKind::kPool, R"({"id": "x", "provider_name": "p"})");
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->name, std::nullopt);
  EXPECT_EQ(pool->priority, 100);
  EXPECT_FALSE(pool->is_paused);
  EXPECT_TRUE(pool->supported_labels.empty());
  EXPECT_EQ(pool->state, ComponentState::kStopped);
  EXPECT_EQ(pool->model_api, 0);
}

TEST(Component, UnknownKeysAreRetained) {
  Expected<Component> builder =
      ParseComponent(ComponentKind::kBuilder, R"({"zz": 1, "aa": 2, "state": "new-word"})");
  ASSERT_TRUE(builder);
  EXPECT_EQ(builder->state, ComponentState::kStopped);
  EXPECT_EQ(ToJson(*builder), R"({"hostname": "", "kind": "builder", "model_api": 0, )"
                              R"("state": "stopped", "version": null, "zz": 1, "aa": 2})");
}

// D-30, D-85
TEST(Component, ALauncherAnnouncesItsProviders) {
  Component launcher;
  launcher.locks_slots = true;
  launcher.providers[ProviderName("a")] = {ProviderState::kUp, FromSeconds(1.5), "", {{"cores", 8}}};
  launcher.providers[ProviderName("b")] = {ProviderState::kFailing, FromSeconds(2), "401", {}};
  std::string text = ToJson(launcher);
  EXPECT_EQ(
      text,
      R"({"hostname": "", "kind": "launcher", "locks_slots": true, "model_api": 0, "providers": )"
      R"({"a": {"state": "up", "since": 1.5, "limit": {"cores": 8}}, )"
      R"("b": {"state": "failing", "since": 2.0, "fault": "401"}}, "state": "stopped", "version": null})");
  EXPECT_EQ(ParseComponent(ComponentKind::kLauncher, text), launcher);
  auto odd = ParseComponent(ComponentKind::kLauncher,
                            R"({"providers": {"a": 1, "b": {"state": "new", "since": "x", "limit": [1]}}})");
  ASSERT_TRUE(odd);
  ASSERT_EQ(odd->providers.size(), 1u) << "what makes no sense is left out";
  EXPECT_EQ(odd->providers.at(ProviderName("b")), ProviderReport{.state = ProviderState::kUp});
  EXPECT_TRUE(ParseComponent(ComponentKind::kLauncher, R"({"providers": []})"));
}

// D-30
TEST(Component, WhatIsWrongIsAnnounced) {
  Component launcher;
  launcher.configuration_rejected = RejectedConfiguration{FromSeconds(3), "nodepool.yaml: line 2"};
  launcher.providers[ProviderName("a")] = {ProviderState::kUp, FromSeconds(1), "", {}, {"1 host is down"}};
  launcher.shortages[LabelName("small")] = {FromSeconds(4), "not enough capacity"};
  std::string text = ToJson(launcher);
  EXPECT_EQ(text,
            R"({"configuration_rejected": {"since": 3.0, "error": "nodepool.yaml: line 2"}, "hostname": "", )"
            R"("kind": "launcher", "model_api": 0, "providers": {"a": {"state": "up", "since": 1.0, )"
            R"("notices": ["1 host is down"]}}, "shortages": {"small": {"since": 4.0, )"
            R"("why": "not enough capacity"}}, "state": "stopped", "version": null})");
  EXPECT_EQ(ParseComponent(ComponentKind::kLauncher, text), launcher);

  Component pool;
  pool.kind = ComponentKind::kPool;
  pool.label_faults[LabelName("big")] = "no flavor";
  text = ToJson(pool);
  EXPECT_NE(text.find(R"("label_faults": {"big": "no flavor"})"), std::string::npos) << text;
  EXPECT_EQ(ParseComponent(ComponentKind::kPool, text), pool);

  auto odd = ParseComponent(
      ComponentKind::kLauncher,
      R"({"shortages": {"x": 1}, "configuration_rejected": 7, "providers": {"a": {"notices": [1]}}})");
  ASSERT_TRUE(odd);
  EXPECT_TRUE(odd->shortages.empty() && !odd->configuration_rejected);
  EXPECT_TRUE(odd->providers.at(ProviderName("a")).notices.empty());
}

TEST(Component, GarbageIsAnError) {
  EXPECT_FALSE(ParseComponent(ComponentKind::kPool, ""));
  EXPECT_FALSE(ParseComponent(ComponentKind::kPool, R"({"supported_labels": 7})"));
}

}  // namespace
}  // namespace nodepool
