#include <gtest/gtest.h>

#include "async/task_group.h"
#include "store/cache/component_registry.h"
#include "store/components.h"
#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

Component Pool() {
  Component pool;
  pool.kind = ComponentKind::kPool;
  pool.hostname = "np01";
  pool.state = ComponentState::kRunning;
  pool.id = LauncherId("np01-PoolWorker.p-main-1");
  pool.provider_name = ProviderName("p");
  pool.supported_labels.emplace_back("small");
  return pool;
}

class ComponentTest : public ::testing::Test {
 protected:
  ComponentTest() : registry(w.time.loop(), w.faulty), entry(w.time.loop(), w.faulty, Pool()) {
    w.Run(EnsureComponentDirectories(w.time.loop(), w.faulty));
    registry.Start();
    w.Run(registry.WaitSynced());
  }
  ~ComponentTest() override {
    w.Run(entry.Unregister());
    w.Run(registry.Stop());
  }
  void Settle() { w.time.Advance(std::chrono::seconds(1)); }

  World w;
  ComponentRegistry registry;
  ComponentEntry entry;
};

// coordination.17.1, 17.2
TEST_F(ComponentTest, AnEntryIsAnEphemeralSequentialZnode) {
  EXPECT_EQ(entry.path(), "");
  w.Run(entry.Register());
  EXPECT_EQ(entry.path(), "pool/np010000000000");
  zk::Result<zk::NodeData> node = w.memory.tree().Get("/nodepool/components/pool/np010000000000");
  ASSERT_TRUE(node);
  EXPECT_NE(node->stat.ephemeral_owner, 0);
  EXPECT_EQ(node->data, ToJson(Pool()));
  Settle();
  EXPECT_TRUE(registry.Contains(entry.path()));
  ASSERT_EQ(registry.Pools().size(), 1u);
  EXPECT_EQ(*registry.Pools()[0], Pool());
  EXPECT_EQ(w.Children("/nodepool/components").size(), 3u);
}

// coordination.17.3
TEST_F(ComponentTest, AChangeRewritesTheSameZnodeOnce) {
  w.Run(entry.Register());
  Component changed = Pool();
  entry.Update(changed);
  changed.supported_labels.emplace_back("large");
  w.faulty.ClearCalls();
  entry.Update(changed);
  entry.Update(changed);
  Settle();
  EXPECT_EQ(w.faulty.CountWrites(), 1u);
  EXPECT_EQ(registry.all().at("pool/np010000000000").supported_labels.size(), 2u);
}

TEST_F(ComponentTest, AChangeTakenBackIsWrittenWhenTheFirstOneLostItsAnswer) {
  w.Run(entry.Register());
  bool is_lost = false;
  w.faulty.FailWhen([&](const testing::FaultyZk::Call& call) {
    if (!call.is_write || std::exchange(is_lost, true)) return testing::FaultyZk::Fault::kNone;
    return testing::FaultyZk::Fault::kAfter;
  });
  Component changed = Pool();
  changed.is_paused = true;
  entry.Update(changed);
  w.time.RunUntil([&] { return is_lost; });
  w.faulty.FailNever();
  entry.Update(Pool());
  Settle();
  EXPECT_FALSE(registry.all().at("pool/np010000000000").is_paused);
}

TEST_F(ComponentTest, AChangeIsReportedWithWhatWasBefore) {
  std::vector<std::string> changes;
  Subscription watch =
      registry.OnChange([&](const std::string& path, const Component* before, const Component* after) {
        auto count = [](const Component* c) {
          return c == nullptr ? -1 : static_cast<int>(c->supported_labels.size());
        };
        changes.push_back(fmt::format("{}: {} -> {}", path, count(before), count(after)));
      });
  w.Run(entry.Register());
  Component changed = Pool();
  changed.supported_labels.emplace_back("large");
  entry.Update(changed);
  Settle();
  w.Put("/nodepool/components/pool/np010000000000", "{");
  Settle();
  w.Run(entry.Unregister());
  Settle();
  EXPECT_EQ(changes, (std::vector<std::string>{"pool/np010000000000: -1 -> 1", "pool/np010000000000: 1 -> 2",
                                               "pool/np010000000000: 2 -> -1"}));
}

// coordination.17.4
TEST_F(ComponentTest, UnregisteringDeletesTheEntry) {
  w.Run(entry.Register());
  w.Run(entry.Unregister());
  Settle();
  EXPECT_TRUE(registry.all().empty());
  EXPECT_EQ(entry.path(), "");
}

TEST_F(ComponentTest, UnregisteringIsRepeatedThroughFaults) {
  for (auto fault : {testing::FaultyZk::Fault::kBefore, testing::FaultyZk::Fault::kAfter}) {
    World world;
    ComponentEntry announced(world.time.loop(), world.faulty, Pool());
    world.Run(announced.Register());
    world.faulty.FailNth(0, fault);
    world.Run(announced.Unregister());
    EXPECT_TRUE(world.Children("/nodepool/components/pool").empty());
  }
}

TEST_F(ComponentTest, UnregisteringEndsARegistrationThatWaits) {
  World world;
  ComponentEntry announced(world.time.loop(), world.faulty, Pool());
  TaskGroup group(world.time.loop(), log::Logger("test"));
  world.memory.Disconnect(*world.client);
  group.Spawn("register", announced.Register());
  world.time.Advance(std::chrono::seconds(1));
  ASSERT_EQ(group.size(), 1u);
  world.Run(announced.Unregister());
  world.time.Advance(std::chrono::seconds(1));
  EXPECT_EQ(group.size(), 0u);
  world.Run(group.Stop());
  world.memory.Reconnect(*world.client);
}

TEST_F(ComponentTest, UnregisteringFindsWhatAnInterruptedCreationMade) {
  World world;
  ComponentEntry announced(world.time.loop(), world.faulty, Pool());
  TaskGroup group(world.time.loop(), log::Logger("test"));
  world.faulty.FailWhen([&](const testing::FaultyZk::Call& call) {
    bool has_parents = world.memory.tree().Exists("/nodepool/components/pool").has_value();
    return call.name == "Create" && has_parents ? testing::FaultyZk::Fault::kAfter
                                                : testing::FaultyZk::Fault::kNone;
  });
  group.Spawn("register", announced.Register());
  ASSERT_TRUE(world.time.RunUntil([&] { return world.Children("/nodepool/components/pool").size() == 1; }));
  world.faulty.FailNever();
  world.Run(announced.Unregister());
  world.Run(group.Stop());
  EXPECT_TRUE(world.Children("/nodepool/components/pool").empty());
}

// coordination.17.5
TEST_F(ComponentTest, ANewSessionGetsANewEntry) {
  w.Run(entry.Register());
  w.memory.ExpireSession(*w.client);
  ASSERT_TRUE(w.time.RunUntil([&] { return entry.path() == "pool/np010000000001"; }));
  ASSERT_TRUE(w.time.RunUntil([&] { return registry.Contains(entry.path()); }));
  EXPECT_EQ(w.Children("/nodepool/components/pool"), std::vector<std::string>{"np010000000001"});
}

TEST_F(ComponentTest, ADeletedEntryIsCreatedAgain) {
  w.Run(entry.Register());
  w.Erase("/nodepool/components/pool/np010000000000");
  Component changed = Pool();
  changed.is_paused = true;
  entry.Update(changed);
  ASSERT_TRUE(w.time.RunUntil([&] { return entry.path() == "pool/np010000000001"; }));
}

TEST_F(ComponentTest, LostAnswersLeaveOneEntry) {
  for (auto fault : {testing::FaultyZk::Fault::kBefore, testing::FaultyZk::Fault::kAfter}) {
    for (std::size_t n = 0; n < 8; ++n) {
      World world;
      ComponentEntry announced(world.time.loop(), world.faulty, Pool());
      world.faulty.FailNth(n, fault);
      world.Run(announced.Register());
      Component changed = Pool();
      changed.is_paused = true;
      announced.Update(changed);
      world.time.Advance(std::chrono::seconds(10));
      EXPECT_EQ(world.Children("/nodepool/components/pool").size(), 1u) << n;
      EXPECT_EQ(world.Data("/nodepool/components/" + announced.path()), ToJson(changed)) << n;
      world.faulty.FailNever();
      world.Run(announced.Unregister());
      EXPECT_TRUE(world.Children("/nodepool/components/pool").empty()) << n;
    }
  }
}

// coordination.17.5
TEST_F(ComponentTest, ANewSessionGetsOneEntryWhateverFails) {
  for (auto fault : {testing::FaultyZk::Fault::kBefore, testing::FaultyZk::Fault::kAfter}) {
    for (std::size_t n = 0; n < 4; ++n) {
      World world;
      ComponentEntry announced(world.time.loop(), world.faulty, Pool());
      world.Run(announced.Register());
      world.faulty.FailNth(n, fault);
      world.memory.ExpireSession(*world.client);
      world.time.Advance(std::chrono::seconds(30));
      std::vector<std::string> expected = {std::string(zk::BaseName(announced.path()))};
      EXPECT_EQ(world.Children("/nodepool/components/pool"), expected) << n;
      world.faulty.FailNever();
      world.Run(announced.Unregister());
    }
  }
}

TEST_F(ComponentTest, TheModelVersionIsTheMinimumOfAll) {
  w.Put("/nodepool/components/builder/nb010000000000", R"({"model_api": -1})");
  w.Put("/nodepool/components/builder/nb010000000001", "garbage");
  w.Put("/nodepool/components/executor/ze010000000001", "{}");
  Settle();
  EXPECT_EQ(registry.all().size(), 1u);
  EXPECT_EQ(registry.model_api(), -1);
  EXPECT_TRUE(registry.Pools().empty());
}

}  // namespace
}  // namespace nodepool::store
