#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/task_group.h"
#include "async/testing/run_ready.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "zk/recipes/lock.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::zk {

namespace {

using nodepool::testing::MemoryZk;
using nodepool::testing::VirtualTime;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kElection = "/nodepool/elections/stats";

struct Candidate {
  Candidate(VirtualTime& time, MemoryZk& zk, std::string name, std::uint64_t seed)
      : client(zk.Connect()),
        random(seed),
        election(time.loop(), *client, random, kElection, name),
        name(name) {}
  std::unique_ptr<Client> client;
  SeededRandom random;
  Election election;
  std::string name;
};

Task<> Lead(Loop& loop, std::vector<std::string>& log, std::string name, Duration term) {
  log.push_back(name + " leads");
  try {
    co_await loop.SleepFor(term);
  } catch (...) {
    log.push_back(name + " was stopped");
    throw;
  }
  log.push_back(name + " is done");
}

Task<> Fail() {
  throw Error(Verdict::kFail, "broken");
  co_return;
}

class ElectionTest : public ::testing::Test {
 protected:
  ~ElectionTest() override { time.Run(group.Stop()); }

  TaskGroup::TaskId Stand(Candidate& candidate, Duration term = std::chrono::hours(1)) {
    auto lead = [this, name = candidate.name, term] { return Lead(time.loop(), log, name, term); };
    auto id = group.Spawn("contend", candidate.election.Run(lead));
    testing::RunReady(time.loop());
    return id;
  }
  std::vector<std::string> TakeLog() { return std::exchange(log, {}); }

  VirtualTime time;
  MemoryZk zk{time.loop()};
  Candidate a{time, zk, "a-1", 1};
  Candidate b{time, zk, "b-2", 2};
  std::vector<std::string> log;
  TaskGroup group{time.loop(), log::Logger("test.election")};
};

// coordination.md 6.12
TEST_F(ElectionTest, OneLeadsAndIsSucceededWhenDone) {
  Stand(a, seconds(10));
  Stand(b, seconds(10));
  EXPECT_THAT(log, ElementsAre("a-1 leads"));
  std::string owner = SortedContenders(zk.tree().GetChildren(kElection)->names).front();
  EXPECT_EQ(zk.tree().Get(kElection + "/" + owner)->data, "a-1");
  time.Advance(seconds(30));
  EXPECT_THAT(TakeLog(), ElementsAre("a-1 leads", "a-1 is done", "b-2 leads", "b-2 is done"));
  EXPECT_EQ(zk.tree().Exists(kElection)->num_children, 0);
}

TEST_F(ElectionTest, ALostSessionEndsTheLeadership) {
  Stand(a);
  Stand(b);
  zk.ExpireSession(*a.client);
  time.Advance(seconds(5));
  EXPECT_THAT(TakeLog(), ElementsAre("a-1 leads", "a-1 was stopped", "b-2 leads"));
  zk.ExpireSession(*b.client);
  time.Advance(seconds(5));
  EXPECT_THAT(TakeLog(), ElementsAre("b-2 was stopped", "a-1 leads")) << "a stood again";
}

TEST_F(ElectionTest, AShortBreakOfTheConnectionDoesNotEndTheLeadership) {
  Stand(a);
  zk.Disconnect(*a.client);
  time.Advance(seconds(5));
  zk.Reconnect(*a.client);
  time.Advance(seconds(60));
  EXPECT_THAT(TakeLog(), ElementsAre("a-1 leads"));
}

TEST_F(ElectionTest, CancellingResigns) {
  auto id = Stand(a);
  Stand(b);
  group.Cancel(id);
  time.Advance(seconds(1));
  EXPECT_THAT(TakeLog(), ElementsAre("a-1 leads", "a-1 was stopped", "b-2 leads"));
}

TEST_F(ElectionTest, AFailingLeaderResigns) {
  EXPECT_THROW(time.Run(a.election.Run(&Fail)), Error);
  EXPECT_EQ(zk.tree().Exists(kElection)->num_children, 0);
}

TEST_F(ElectionTest, AFailedLeaderContendsAgain) {
  auto id = group.Spawn("contend", a.election.RunForEver(&Fail, "Leading", log::Logger("test")));
  log::Capture logs;
  time.Advance(seconds(1));
  Stand(b, seconds(1));
  EXPECT_THAT(TakeLog(), ElementsAre("b-2 leads"));
  time.Advance(seconds(30));
  EXPECT_GE(logs.Count("Leading failed, another may take over: broken"), 3);
  group.Cancel(id);
  time.Advance(seconds(1));
  EXPECT_EQ(group.size(), 0u);
}

TEST_F(ElectionTest, AClosedClientEndsTheElection) {
  Stand(a);
  time.Run(a.client->Close());
  time.Advance(seconds(5));
  EXPECT_THAT(TakeLog(), ElementsAre("a-1 leads", "a-1 was stopped"));
  EXPECT_EQ(group.size(), 0u);
}

}  // namespace

}  // namespace nodepool::zk
