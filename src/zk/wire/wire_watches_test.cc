#include "zk/wire/wire_watches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zk/wire/wire_for_test.h"

namespace nodepool::zk {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using Kind = WatchTable::OneShotKind;

class WireWatchesTest : public ::testing::Test {
 protected:
  void Dispatch(EventType type, std::string path) {
    WatchEvent event;
    event.type = type;
    event.path = std::move(path);
    table->Dispatch(event);
  }

  std::shared_ptr<WatchTable> table = std::make_shared<WatchTable>();
  EventLog log;
};

TEST_F(WireWatchesTest, OneShotsByKindOfEvent) {
  auto arm = [&] {
    table->AddOneShot(Kind::kData, "/a", log.watcher());
    table->AddOneShot(Kind::kExist, "/a", log.watcher());
    table->AddOneShot(Kind::kChild, "/a", log.watcher());
  };
  arm();
  Dispatch(EventType::kDataChanged, "/b");
  EXPECT_THAT(log.events(), ElementsAre());
  Dispatch(EventType::kChildren, "/a");
  EXPECT_EQ(log.events().size(), 1u);
  Dispatch(EventType::kDataChanged, "/a");
  EXPECT_EQ(log.events().size(), 3u);
  Dispatch(EventType::kDeleted, "/a");
  EXPECT_EQ(log.events().size(), 3u) << "all are spent";
  arm();
  Dispatch(EventType::kDeleted, "/a");
  EXPECT_EQ(log.events().size(), 6u);
}

// coordination.md 2.9
TEST_F(WireWatchesTest, OneEventServesRecursiveAndOneShotWatches) {
  table->AddOneShot(Kind::kData, "/a/b/c", log.watcher());
  Subscription root = table->AddLasting(WatchMode::kPersistentRecursive, "/", log.watcher());
  Subscription a = table->AddLasting(WatchMode::kPersistentRecursive, "/a", log.watcher());
  Subscription b = table->AddLasting(WatchMode::kPersistentRecursive, "/a/b", log.watcher());
  Subscription like_b = table->AddLasting(WatchMode::kPersistentRecursive, "/a/bb", log.watcher());
  Subscription plain = table->AddLasting(WatchMode::kPersistent, "/a/b", log.watcher());
  Dispatch(EventType::kDataChanged, "/a/b/c");
  EXPECT_EQ(log.events().size(), 4u);
  Dispatch(EventType::kDataChanged, "/a/b/c");
  EXPECT_EQ(log.events().size(), 7u);
  Dispatch(EventType::kChildren, "/a/b");
  EXPECT_EQ(log.events().size(), 8u) << "child events are for the plain one";
  Dispatch(EventType::kCreated, "/");
  EXPECT_EQ(log.events().size(), 9u);
}

TEST_F(WireWatchesTest, WatchersMayEndSubscriptionsWhileTheyAreCalled) {
  Subscription first, second;
  int calls = 0;
  first = table->AddLasting(WatchMode::kPersistent, "/a", [&](const WatchEvent&) {
    ++calls;
    first.Reset();
    second.Reset();
    table->AddOneShot(Kind::kData, "/a", [&](const WatchEvent&) { ++calls; });
  });
  second = table->AddLasting(WatchMode::kPersistent, "/a", [&](const WatchEvent&) { calls += 100; });
  Dispatch(EventType::kDataChanged, "/a");
  EXPECT_EQ(calls, 1);
  Dispatch(EventType::kDataChanged, "/a");
  EXPECT_EQ(calls, 2);
}

TEST_F(WireWatchesTest, LostSessionSpendsOneShotsOnly) {
  table->AddOneShot(Kind::kData, "/a", log.watcher());
  table->AddOneShot(Kind::kChild, "/b", log.watcher());
  Subscription lasting = table->AddLasting(WatchMode::kPersistentRecursive, "/c", log.watcher());
  auto paths = table->Paths();
  EXPECT_THAT(paths.data, ElementsAre("/a"));
  EXPECT_THAT(paths.child, ElementsAre("/b"));
  EXPECT_THAT(paths.recursive, ElementsAre("/c"));
  table->DropOneShots();
  EXPECT_THAT(log.events(), ElementsAre("none", "none"));
  EXPECT_TRUE(table->Paths().data.empty());
  EXPECT_THAT(table->Paths().recursive, ElementsAre("/c"));
  lasting.Reset();
  EXPECT_TRUE(table->Paths().recursive.empty());
}

TEST_F(WireWatchesTest, SubscriptionOutlivesItsTable) {
  auto watched = std::make_shared<int>();
  Watcher watcher = [watched, tell = log.watcher()](const WatchEvent& event) { tell(event); };
  Subscription registration = table->AddLasting(WatchMode::kPersistent, "/a", std::move(watcher));
  table.reset();
  registration.Reset();
  EXPECT_EQ(watched.use_count(), 1) << "nothing keeps the watcher";
  EXPECT_THAT(log.events(), ElementsAre());
}

}  // namespace
}  // namespace nodepool::zk
