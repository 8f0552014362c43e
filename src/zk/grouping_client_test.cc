#include "zk/grouping_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "base/ids.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::zk {
namespace {

using nodepool::testing::FaultyZk;
using nodepool::testing::MemoryZk;
using nodepool::testing::MemoryZkOptions;
using nodepool::testing::VirtualTime;
using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::ElementsAre;

class GroupingClientTest : public ::testing::Test {
 protected:
  GroupingClientTest() {
    for (int i = 0; i < kRecords; ++i) zk.tree().Create(CreateOp{Path(i), ""}, 0, time.loop().Now());
    time.Advance(std::chrono::seconds(1));
  }
  ~GroupingClientTest() override {
    time.Run(tasks.Stop());
    time.Run(client.Close());
  }

  static std::string Path(int record) { return fmt::format("/r{}", record); }
  // Begins to write the record, and notes how that ends as `ends[name]`.
  TaskGroup::TaskId Begin(const std::string& name, Task<Result<Stat>> write) {
    return tasks.Spawn(name, Note(name, std::move(write)));
  }
  TaskGroup::TaskId BeginSet(int record, std::int32_t version = -1) {
    return Begin(Path(record), client.Set(Path(record), "new", version));
  }
  Task<> Note(std::string name, Task<Result<Stat>> write) {
    Outcome<Result<Stat>> end = co_await Attempt(std::move(write));
    ends[name] = !end               ? end.error().message()
                 : end->has_value() ? fmt::format("version {}", (*end)->version)
                                    : std::string(ToString(end->error()));
  }
  // Reads and increments the record twenty times.
  Task<> Increment(int record) {
    for (int i = 0; i < 20; ++i) {
      Outcome<Result<NodeData>> read = co_await Attempt(client.Get(Path(record)));
      if (!read) continue;
      int value = (*read)->data.empty() ? 0 : std::stoi((*read)->data);
      ++uncertain[record];
      Task<Result<Stat>> write = client.Set(Path(record), std::to_string(value + 1), (*read)->stat.version);
      Outcome<Result<Stat>> written = co_await Attempt(std::move(write));
      if (!written) continue;
      --uncertain[record];
      if (*written) ++certain[record];
    }
  }
  void Settle() { time.Advance(std::chrono::minutes(1)); }
  std::uint64_t transactions() const { return zk.counters(*wire).writes; }
  std::string DataOf(int record) { return zk.tree().Get(Path(record))->data; }

  static constexpr int kRecords = 10;
  VirtualTime time;
  SeededRandom random{1};
  MemoryZk zk{time.loop(), MemoryZkOptions{.latency = milliseconds(10)}};
  std::unique_ptr<Client> wire = zk.Connect();
  FaultyZk faulty{*wire};
  GroupingClient client{faulty, {.at_once = 1, .ops = 6, .bytes = 4096}};
  TaskGroup tasks{time.loop(), log::Logger("test")};
  std::map<std::string, std::string> ends;
  std::map<int, int> certain, uncertain;  // increments, by record
};

std::vector<std::string> Values(const std::map<std::string, std::string>& map) {
  std::vector<std::string> values;
  for (const auto& [key, value] : map) values.push_back(value);
  return values;
}

TEST_F(GroupingClientTest, AWriteThatFindsNoOtherIsSentAtOnce) {
  SteadyTime begin = time.loop().SteadyNow();
  EXPECT_EQ(time.Run(client.Set(Path(0), "a", 0))->version, 1);
  EXPECT_EQ(time.Run(client.Multi({SetOp{Path(0), "b", 1}})).results[0].stat.version, 2);
  EXPECT_TRUE(time.Run(client.Delete(Path(0), 2)));
  EXPECT_EQ(time.loop().SteadyNow() - begin, milliseconds(30));
  EXPECT_EQ(transactions(), 3u);
}

TEST_F(GroupingClientTest, WritesThatWaitGoTogetherInTheOrderOfTheCalls) {
  SteadyTime begin = time.loop().SteadyNow();
  BeginSet(0);
  for (int i = 1; i < 5; ++i) BeginSet(i);
  Begin("again", client.Set(Path(4), "newer", 1));
  Task<> all = tasks.Join();
  time.Run(std::move(all));
  EXPECT_EQ(time.loop().SteadyNow() - begin, milliseconds(20)) << "they waited for one write";
  EXPECT_EQ(transactions(), 2u);
  EXPECT_EQ(ends["again"], "version 2");
  EXPECT_EQ(DataOf(4), "newer");
}

TEST_F(GroupingClientTest, EachKeepsItsOutcome) {
  BeginSet(0);
  Task<MultiResult> pair = client.Multi({SetOp{Path(1), "a", 0}, CreateOp{"/new", "b"}});
  Task<MultiResult> refused = client.Multi({SetOp{Path(2), "a", 0}, DeleteOp{"/none"}});
  std::optional<MultiResult> pair_end, refused_end;
  auto keep = [](Task<MultiResult> task, std::optional<MultiResult>& end) -> Task<> {
    end = co_await std::move(task);
  };
  tasks.Spawn("pair", keep(std::move(pair), pair_end));
  tasks.Spawn("refused", keep(std::move(refused), refused_end));
  BeginSet(3);
  Settle();
  ASSERT_TRUE(pair_end && pair_end->ok());
  ASSERT_EQ(pair_end->results.size(), 2u);
  EXPECT_EQ(pair_end->results[0].stat.version, 1);
  EXPECT_EQ(pair_end->results[1].path, "/new");
  ASSERT_TRUE(refused_end);
  EXPECT_EQ(refused_end->failed, 1);
  EXPECT_EQ(refused_end->code(), Code::kNoNode);
  EXPECT_EQ(refused_end->results[0].code, Code::kOk);
  EXPECT_EQ(DataOf(2), "");
  EXPECT_EQ(ends[Path(3)], "version 1");
  EXPECT_EQ(transactions(), 3u) << "the first one, the refused one, and the rest of that";
}

TEST_F(GroupingClientTest, ManyConflictsCostTwoTripsMore) {
  SteadyTime begin = time.loop().SteadyNow();
  BeginSet(0);
  for (int i = 1; i < 6; ++i) BeginSet(i, 7);
  BeginSet(6);
  time.Run(tasks.Join());
  for (int i = 1; i < 6; ++i) EXPECT_EQ(ends[Path(i)], ToString(Code::kBadVersion)) << i;
  EXPECT_EQ(ends[Path(6)], "version 1");
  EXPECT_EQ(time.loop().SteadyNow() - begin, milliseconds(40));
}

TEST_F(GroupingClientTest, WhatIsNoTransactionConcernsOnlyItself) {
  BeginSet(0);
  BeginSet(1);
  Begin("invalid", client.Set("no path", "", -1));
  BeginSet(2);
  Settle();
  EXPECT_EQ(ends[Path(1)], "version 1");
  EXPECT_EQ(ends[Path(2)], "version 1");
  EXPECT_THAT(ends["invalid"], ::testing::HasSubstr("path"));
}

TEST_F(GroupingClientTest, GroupsAreBounded) {
  BeginSet(0);
  for (int i = 1; i < 9; ++i) BeginSet(i);
  Begin("large", client.Set(Path(9), std::string(100'000, 'x'), -1));
  Settle();
  EXPECT_THAT(Values(ends), Each("version 1"));
  EXPECT_EQ(transactions(), 4u) << "1, 6, 2, and the large one";
}

TEST_F(GroupingClientTest, ContendersOfLocksGoWithOthers) {
  BeginSet(0);
  std::optional<Result<Created>> first, second;
  auto keep = [](Task<Result<Created>> task, std::optional<Result<Created>>& end) -> Task<> {
    end = co_await std::move(task);
  };
  tasks.Spawn("first", keep(client.Create("/r1/c-", "me", CreateMode::kEphemeralSequential), first));
  tasks.Spawn("second", keep(client.Create("/r1/c-", "me", CreateMode::kEphemeralSequential), second));
  Settle();
  EXPECT_EQ((*first)->path, "/r1/c-0000000000");
  EXPECT_EQ((*second)->path, "/r1/c-0000000001");
  EXPECT_EQ(transactions(), 2u);
}

TEST_F(GroupingClientTest, WritesWaitOnlyWhileEnoughAreUnderWay) {
  GroupingClient two(faulty, {.at_once = 2});
  SteadyTime begin = time.loop().SteadyNow();
  for (int i = 0; i < 6; ++i) Begin(Path(i), two.Set(Path(i), "new", 0));
  time.Advance(milliseconds(10));
  EXPECT_EQ(ends.size(), 2u);
  time.Run(tasks.Join());
  EXPECT_EQ(time.loop().SteadyNow() - begin, milliseconds(20));
  EXPECT_EQ(transactions(), 3u);
}

TEST_F(GroupingClientTest, ALostAnswerIsLostForAll) {
  BeginSet(0);
  for (int i = 1; i < 4; ++i) BeginSet(i);
  faulty.FailNth(1, FaultyZk::Fault::kAfter);
  Settle();
  EXPECT_EQ(ends[Path(0)], "version 1");
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(ends[Path(i)], "injected fault");
    EXPECT_EQ(DataOf(i), "new");
  }
  BeginSet(5);
  Settle();
  EXPECT_EQ(ends[Path(5)], "version 1") << "it goes on";
}

// Its caller may find out that nothing was written, and act on that.
TEST_F(GroupingClientTest, AWriteThatIsCancelledWhileItWaitsIsNeverSent) {
  BeginSet(0);
  TaskGroup::TaskId first = BeginSet(1);
  BeginSet(2);
  time.Advance(milliseconds(5));
  tasks.Cancel(first);
  Settle();
  EXPECT_EQ(DataOf(1), "");
  EXPECT_EQ(ends[Path(2)], "version 1");
}

TEST_F(GroupingClientTest, TheOthersAreToldWhenTheTaskThatSendsIsCancelled) {
  BeginSet(0);
  TaskGroup::TaskId first = BeginSet(1);
  BeginSet(2);
  time.Advance(milliseconds(15));
  tasks.Cancel(first);
  BeginSet(3);
  Settle();
  EXPECT_THAT(ends[Path(2)], ::testing::HasSubstr("not known whether it was carried out"));
  EXPECT_EQ(DataOf(2), "new");
  EXPECT_EQ(ends[Path(3)], "version 1");
}

// Its turn has come, but its task has not run since.
TEST_F(GroupingClientTest, TheOthersGoOnWhenTheTaskThatIsToSendIsCancelled) {
  TaskGroup::TaskId first = 0;
  auto set_and_cancel = [](GroupingClient& zk, TaskGroup& group, const TaskGroup::TaskId& id) -> Task<> {
    co_await zk.Set(Path(0), "new", -1);
    group.Cancel(id);
  };
  tasks.Spawn("set and cancel", set_and_cancel(client, tasks, first));
  time.Advance(milliseconds(1));
  first = BeginSet(1);
  BeginSet(2);
  Settle();
  EXPECT_EQ(DataOf(1), "");
  EXPECT_EQ(ends[Path(2)], "version 1");
}

TEST_F(GroupingClientTest, AWriteEndsWithTheSessionInWhichItWasCalled) {
  BeginSet(0);
  BeginSet(1);
  time.Advance(milliseconds(2));
  zk.ExpireSession(*wire);
  Settle();
  EXPECT_THAT(ends[Path(1)], ::testing::HasSubstr("session"));
  EXPECT_EQ(DataOf(1), "");
  BeginSet(2);
  BeginSet(3);
  Settle();
  EXPECT_EQ(ends[Path(3)], "version 1");
}

// Counters that many tasks increment, each with the version that it has read, with lost answers,
// cancellations and lost connections by chance: what is known to be written is written once.
TEST_F(GroupingClientTest, NothingIsWrittenTwiceOrLost) {
  faulty.FailRandomly(0.05, random);
  std::vector<TaskGroup::TaskId> ids;
  for (int i = 0; i < 60; ++i) ids.push_back(tasks.Spawn("increment", Increment(i % kRecords)));
  for (int i = 0; i < 40; ++i) {
    time.Advance(milliseconds(7));
    if (i % 3 == 0) tasks.Cancel(ids[static_cast<std::size_t>(i)]);
    if (i % 10 == 5)
      zk.Disconnect(*wire, i % 20 == 5 ? MemoryZk::UnderWay::kDone : MemoryZk::UnderWay::kNotDone);
    if (i % 10 == 6) zk.Reconnect(*wire);
  }
  Settle();
  EXPECT_EQ(tasks.size(), 0u);
  for (int i = 0; i < kRecords; ++i) {
    int value = DataOf(i).empty() ? 0 : std::stoi(DataOf(i));
    EXPECT_GE(value, certain[i]) << i;
    EXPECT_LE(value, certain[i] + uncertain[i]) << i;
    EXPECT_GT(certain[i], 10) << i;
  }
}

}  // namespace
}  // namespace nodepool::zk
