#include "zk/recipes/lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/deadline.h"
#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::zk {

namespace {

using nodepool::testing::FaultyZk;
using nodepool::testing::MemoryZk;
using nodepool::testing::VirtualTime;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Fault = FaultyZk::Fault;

const std::string kLockDirectory = "/n/1/lock";

// One process that locks.
struct Peer {
  Peer(VirtualTime& time, MemoryZk& zk, std::uint64_t seed)
      : client(zk.Connect()), faulty(*client), random(seed), locker(time.loop(), faulty, random) {}
  std::unique_ptr<Client> client;
  FaultyZk faulty;
  SeededRandom random;
  Locker locker;
};

// The result of an acquisition that runs concurrently with others.
struct Outcome {
  bool is_done = false;
  std::optional<HeldLock> lock;
  std::optional<Verdict> verdict;
};

Task<> Record(Task<std::optional<HeldLock>> acquire, Outcome& outcome) {
  try {
    outcome.lock = co_await std::move(acquire);
  } catch (...) {
    outcome.verdict = VerdictOf(std::current_exception());
  }
  outcome.is_done = true;
}

class LockTest : public ::testing::Test {
 protected:
  LockTest() {
    for (const char* path : {"/n", "/n/1"}) (void)zk.tree().Create(CreateOp{path}, 0, time.loop().Now());
  }
  ~LockTest() override { time.Run(group.Stop()); }

  std::vector<std::string> Line() {
    Result<Children> children = zk.tree().GetChildren(kLockDirectory);
    return children ? SortedContenders(children->names) : std::vector<std::string>();
  }
  void Spawn(Peer& peer, Outcome& outcome, SteadyTime deadline = SteadyTime::max()) {
    group.Spawn("acquire", Record(peer.locker.Acquire(kLockDirectory, deadline), outcome));
    testing::RunReady(time.loop());
  }
  SteadyTime In(Duration duration) { return time.loop().SteadyNow() + duration; }
  void ForeignContender(const std::string& prefix) {
    ASSERT_TRUE(
        zk.tree().Create(CreateOp{kLockDirectory + "/" + prefix, "", CreateMode::kPersistentSequential}, 0,
                         time.loop().Now()));
  }

  VirtualTime time;
  MemoryZk zk{time.loop()};
  Peer a{time, zk, 1};
  Peer b{time, zk, 2};
  Peer c{time, zk, 3};
  TaskGroup group{time.loop(), log::Logger("test.lock")};
};

// coordination.md 6.7.3 and 6.1
TEST_F(LockTest, KnowsContenders) {
  std::string hex(32, 'a');
  EXPECT_TRUE(IsContender(hex + "__lock__0000000003"));
  EXPECT_TRUE(IsContender("6c84fb90-12c4-11e1-840d-7b25c5ee775a__lock__0000000003"));
  EXPECT_TRUE(IsContender("x__lock__-0000000003"));
  EXPECT_FALSE(IsContender(hex + "__rlock__0000000003"));
  EXPECT_FALSE(IsContender(hex + "__lock__000000003"));
  EXPECT_FALSE(IsContender("_c_x-lock-0000000003"));
  EXPECT_FALSE(IsContender("lease_holder"));
  EXPECT_FALSE(IsContender(""));
  EXPECT_THAT(SortedContenders({"a__lock__0000000010", "z__lock__0000000009", "a__rlock__0000000000"}),
              ElementsAre("z__lock__0000000009", "a__lock__0000000010"));
}

// coordination.md 6.7.1
TEST_F(LockTest, WritesWhatKazooWrites) {
  auto lock = time.Run(a.locker.TryAcquire(kLockDirectory, "who"));
  ASSERT_TRUE(lock);
  EXPECT_THAT(BaseName(lock->path), ::testing::MatchesRegex("[0-9a-f]{32}__lock__0000000000"));
  Result<NodeData> node = zk.tree().Get(lock->path);
  EXPECT_EQ(node->data, "who");
  EXPECT_EQ(node->stat.ephemeral_owner, a.client->session().id);
  EXPECT_EQ(zk.tree().Exists(kLockDirectory)->ephemeral_owner, 0);
  EXPECT_TRUE(a.locker.IsHeld(*lock));
}

TEST_F(LockTest, CostsFewOperations) {
  auto lock = time.Run(a.locker.TryAcquire(kLockDirectory));
  EXPECT_EQ(a.faulty.calls().size(), 2u) << "a listing and one transaction";
  EXPECT_EQ(a.faulty.CountWrites(), 1u);
  EXPECT_FALSE(time.Run(b.locker.TryAcquire(kLockDirectory)));
  EXPECT_EQ(b.faulty.calls().size(), 1u);
  EXPECT_EQ(b.faulty.CountWrites(), 0u) << "nothing is written when another contender is ahead";
  time.Run(a.locker.Release(*lock));
  EXPECT_THAT(Line(), IsEmpty());
  EXPECT_TRUE(zk.tree().Exists(kLockDirectory)) << "the directory stays";
  b.faulty.ClearCalls();
  EXPECT_TRUE(time.Run(b.locker.TryAcquire(kLockDirectory)));
  EXPECT_EQ(b.faulty.calls().size(), 3u) << "a listing, a creation, a listing";
}

TEST_F(LockTest, AFreeLockTakesOneWriteAndShowsTheTreeUnderIt) {
  (void)zk.tree().Create(CreateOp{"/n/1/record", "data"}, 0, time.loop().Now());
  std::vector<ReadOp> reads{{ReadOp::Kind::kData, "/n/1/record"}, {ReadOp::Kind::kData, "/n/1/missing"}};
  for (bool directory_exists : {false, true}) {
    a.faulty.ClearCalls();
    auto acquired = time.Run(a.locker.TryAcquireFree(kLockDirectory, reads));
    ASSERT_TRUE(acquired);
    EXPECT_EQ(acquired->reads.at(0).node.data, "data");
    EXPECT_EQ(acquired->reads.at(1).code, Code::kNoNode);
    EXPECT_EQ(Line(), std::vector<std::string>{BaseName(acquired->lock.path)});
    if (directory_exists) {
      EXPECT_EQ(a.faulty.CountWrites(), 1u);
    }
    EXPECT_FALSE(time.Run(b.locker.TryAcquireFree(kLockDirectory, reads)));
    EXPECT_EQ(Line().size(), 1u) << "who comes second leaves no contender";
    time.Run(a.locker.Release(acquired->lock));
  }
  EXPECT_EQ(a.faulty.calls().size(), 5u) << "a creation, three reads in a message, the release";
}

TEST_F(LockTest, PartsOfAProcessDoNotContendUnlessTheyWait) {
  (void)zk.tree().Create(CreateOp{kLockDirectory}, 0, time.loop().Now());
  Outcome first, second, waiting;
  group.Spawn("first", Record(a.locker.TryAcquire(kLockDirectory), first));
  group.Spawn("second", Record(a.locker.TryAcquire(kLockDirectory), second));
  testing::RunReady(time.loop());
  ASSERT_TRUE(first.is_done && second.is_done);
  EXPECT_NE(first.lock.has_value(), second.lock.has_value());
  EXPECT_EQ(a.faulty.CountWrites(), 1u) << "one contender";
  EXPECT_FALSE(time.Run(a.locker.TryAcquireFree(kLockDirectory, {})));
  EXPECT_EQ(a.faulty.CountWrites(), 1u);
  Spawn(a, waiting);
  EXPECT_EQ(Line().size(), 2u);
  time.Run(a.locker.Release(first.lock ? *first.lock : *second.lock));
  ASSERT_TRUE(waiting.lock);
  EXPECT_FALSE(time.Run(a.locker.TryAcquire(kLockDirectory)));
  time.Run(a.locker.Release(*waiting.lock));
  EXPECT_TRUE(time.Run(a.locker.TryAcquire(kLockDirectory)));
}

TEST_F(LockTest, ALockOfAFormerSessionKeepsNobodyOfTheProcessOut) {
  ASSERT_TRUE(time.Run(a.locker.TryAcquire(kLockDirectory)));
  zk.ExpireSession(*a.client);
  ASSERT_TRUE(time.RunUntil([&] { return a.client->state() == SessionState::kConnected; }));
  EXPECT_TRUE(time.Run(a.locker.TryAcquire(kLockDirectory)));
}

// D-07
TEST_F(LockTest, NeverCreatesAParent) {
  for (bool may_wait : {false, true}) {
    Verdict verdict = Verdict::kFail;
    try {
      time.Run(may_wait ? a.locker.Acquire("/n/2/lock", In(seconds(5))) : a.locker.TryAcquire("/n/2/lock"));
    } catch (const Error& error) {
      verdict = error.verdict();
    }
    EXPECT_EQ(verdict, Verdict::kNotFound);
    EXPECT_FALSE(zk.tree().Exists("/n/2"));
  }
}

// coordination.md 6.7.3: foreign names do not count, foreign prefixes do.
TEST_F(LockTest, IgnoresOtherNamesAndRespectsOtherPrefixes) {
  (void)zk.tree().Create(CreateOp{kLockDirectory}, 0, time.loop().Now());
  ForeignContender("aaaa__rlock__");
  ForeignContender("_c_x-lock-");
  auto lock = time.Run(a.locker.TryAcquire(kLockDirectory));
  ASSERT_TRUE(lock);
  time.Run(a.locker.Release(*lock));
  ForeignContender("6c84fb90-12c4-11e1-840d-7b25c5ee775a__lock__");
  EXPECT_FALSE(time.Run(a.locker.TryAcquire(kLockDirectory)));
}

// coordination.md 17.27
TEST_F(LockTest, OwnersFollowEachOtherInOrder) {
  auto first = time.Run(a.locker.TryAcquire(kLockDirectory));
  Outcome second, third;
  Spawn(b, second);
  Spawn(c, third);
  time.Advance(seconds(100));
  EXPECT_FALSE(second.is_done || third.is_done);
  EXPECT_EQ(Line().size(), 3u);

  b.faulty.ClearCalls();
  c.faulty.ClearCalls();
  time.Run(a.locker.Release(*first));
  testing::RunReady(time.loop());
  EXPECT_TRUE(second.lock);
  EXPECT_FALSE(third.is_done);
  EXPECT_THAT(c.faulty.calls(), IsEmpty()) << "only the successor wakes";
  time.Run(b.locker.Release(*second.lock));
  testing::RunReady(time.loop());
  EXPECT_TRUE(third.lock);
}

TEST_F(LockTest, ACrashedOwnersLockIsFreeAfterItsSession) {
  ASSERT_TRUE(time.Run(a.locker.TryAcquire(kLockDirectory)));
  Outcome second;
  Spawn(b, second);
  a.client.reset();
  time.Advance(seconds(9));
  EXPECT_FALSE(second.is_done);
  time.Advance(seconds(2));
  EXPECT_TRUE(second.lock);
}

TEST_F(LockTest, AVanishedContenderInTheMiddleLetsNobodyPass) {
  auto first = time.Run(a.locker.TryAcquire(kLockDirectory));
  Outcome second, third;
  Spawn(b, second);
  Spawn(c, third);
  zk.ExpireSession(*b.client);
  time.Advance(seconds(1));
  EXPECT_EQ(second.verdict, Verdict::kLostSession);
  EXPECT_FALSE(third.is_done);
  time.Run(a.locker.Release(*first));
  testing::RunReady(time.loop());
  EXPECT_TRUE(third.lock);
}

TEST_F(LockTest, TheDeadlineLeavesNoContender) {
  ASSERT_TRUE(time.Run(a.locker.TryAcquire(kLockDirectory)));
  SteadyTime before = time.loop().SteadyNow();
  EXPECT_FALSE(time.Run(b.locker.Acquire(kLockDirectory, In(seconds(5)))));
  EXPECT_EQ(time.loop().SteadyNow() - before, seconds(5));
  EXPECT_EQ(Line().size(), 1u);
}

TEST_F(LockTest, ACancelledWaiterLeavesNoContender) {
  ASSERT_TRUE(time.Run(a.locker.TryAcquire(kLockDirectory)));
  Outcome second;
  Spawn(b, second);
  ASSERT_EQ(Line().size(), 2u);
  b.faulty.ClearCalls();
  b.faulty.FailWhen(
      [n = 0](const FaultyZk::Call&) mutable { return n++ < 5 ? Fault::kBefore : Fault::kNone; });
  group.CancelAll();
  time.Advance(seconds(20));
  EXPECT_EQ(second.verdict, Verdict::kCancelled);
  EXPECT_EQ(Line().size(), 1u) << "the clean-up repeats until it succeeds";
}

Task<> AcquireTwice(Peer& peer, SteadyTime deadline, Outcome& outcome) {
  std::optional<HeldLock> none = co_await peer.locker.Acquire(kLockDirectory, deadline);
  EXPECT_FALSE(none);
  co_await Record(peer.locker.Acquire(kLockDirectory, SteadyTime::max()), outcome);
}

TEST_F(LockTest, CleaningUpLeavesTheCallerCancellable) {
  ASSERT_TRUE(time.Run(a.locker.TryAcquire(kLockDirectory)));
  Outcome outcome;
  group.Spawn("acquire", AcquireTwice(b, In(seconds(5)), outcome));
  time.Advance(seconds(10));
  EXPECT_EQ(Line().size(), 2u);
  group.CancelAll();
  testing::RunReady(time.loop());
  EXPECT_EQ(outcome.verdict, Verdict::kCancelled);
  EXPECT_EQ(Line().size(), 1u);
}

// D-05: a lock is bound to its session.
TEST_F(LockTest, ALockEndsWithItsSession) {
  auto lock = time.Run(a.locker.TryAcquire(kLockDirectory));
  zk.Disconnect(*a.client);
  EXPECT_TRUE(a.locker.IsHeld(*lock)) << "the session may live";
  zk.Reconnect(*a.client);
  testing::RunReady(time.loop());
  EXPECT_TRUE(a.locker.IsHeld(*lock));
  zk.ExpireSession(*a.client);
  testing::RunReady(time.loop());
  EXPECT_FALSE(a.locker.IsHeld(*lock));
  auto next = time.Run(b.locker.TryAcquire(kLockDirectory));
  ASSERT_TRUE(next);
  a.faulty.ClearCalls();
  time.Run(a.locker.Release(*lock));
  EXPECT_THAT(a.faulty.calls(), IsEmpty()) << "nothing is sent for another session's lock";
  EXPECT_TRUE(b.locker.IsHeld(*next));
}

TEST_F(LockTest, ReleaseRetriesAndCountsADeletedContenderAsReleased) {
  auto lock = time.Run(a.locker.TryAcquire(kLockDirectory));
  a.faulty.FailNth(0, Fault::kAfter);
  time.Run(a.locker.Release(*lock));
  EXPECT_THAT(Line(), IsEmpty());
  time.Run(a.locker.Release(*lock));
}

TEST_F(LockTest, AWaiterSurvivesAReconnection) {
  auto first = time.Run(a.locker.TryAcquire(kLockDirectory));
  Outcome second;
  Spawn(b, second);
  zk.Disconnect(*b.client);
  time.Run(a.locker.Release(*first));
  time.Advance(seconds(3));
  EXPECT_FALSE(second.is_done);
  zk.Reconnect(*b.client);
  testing::RunReady(time.loop());
  ASSERT_TRUE(second.lock);
  EXPECT_EQ(Line().size(), 1u);
}

TEST_F(LockTest, AVanishedDirectoryIsNotMadeAgain) {
  auto first = time.Run(a.locker.TryAcquire(kLockDirectory));
  Outcome second;
  Spawn(b, second);
  ASSERT_TRUE(time.Run(DeleteRecursive(*c.client, "/n/1")));
  testing::RunReady(time.loop());
  EXPECT_EQ(second.verdict, Verdict::kNotFound);
  EXPECT_FALSE(zk.tree().Exists("/n/1"));
}

// Every operation of every way in fails once, before or after its effect: the
// outcome is the same as without the fault, with one contender at most.
TEST_F(LockTest, SurvivesAnyLostAnswer) {
  for (bool directory_exists : {false, true}) {
    for (bool may_wait : {false, true}) {
      for (Fault fault : {Fault::kBefore, Fault::kAfter}) {
        for (std::size_t n = 0; n < 6; ++n) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", directory_exists, may_wait, static_cast<int>(fault), n));
          time.Run(DeleteRecursive(*c.client, kLockDirectory));
          if (directory_exists) (void)zk.tree().Create(CreateOp{kLockDirectory}, 0, time.loop().Now());
          a.faulty.FailNth(n, fault);
          auto lock = time.Run(may_wait ? a.locker.Acquire(kLockDirectory, In(seconds(30)))
                                        : a.locker.TryAcquire(kLockDirectory));
          ASSERT_TRUE(lock);
          EXPECT_EQ(Line(), std::vector<std::string>{BaseName(lock->path)});
          EXPECT_FALSE(time.Run(b.locker.TryAcquire(kLockDirectory)));
          time.Run(a.locker.Release(*lock));
          EXPECT_THAT(Line(), IsEmpty());
        }
      }
    }
  }
}

TEST_F(LockTest, AFreeLockSurvivesAnyLostAnswer) {
  (void)zk.tree().Create(CreateOp{"/n/1/record", "data"}, 0, time.loop().Now());
  for (bool directory_exists : {false, true}) {
    for (Fault fault : {Fault::kBefore, Fault::kAfter}) {
      for (std::size_t n = 0; n < 8; ++n) {
        SCOPED_TRACE(fmt::format("{} {} {}", directory_exists, static_cast<int>(fault), n));
        time.Run(DeleteRecursive(*c.client, kLockDirectory));
        if (directory_exists) (void)zk.tree().Create(CreateOp{kLockDirectory}, 0, time.loop().Now());
        a.faulty.FailNth(n, fault);
        auto acquired =
            time.Run(a.locker.TryAcquireFree(kLockDirectory, {{ReadOp::Kind::kData, "/n/1/record"}}));
        ASSERT_TRUE(acquired);
        EXPECT_EQ(acquired->reads.at(0).node.data, "data");
        EXPECT_EQ(Line(), std::vector<std::string>{BaseName(acquired->lock.path)});
        time.Run(a.locker.Release(acquired->lock));
        EXPECT_THAT(Line(), IsEmpty());
      }
    }
  }
}

// It is carried out in the next session, which its caller does not know yet.
TEST_F(LockTest, AFreeLockThatIsTriedBetweenTwoSessionsLeavesNoContender) {
  (void)zk.tree().Create(CreateOp{kLockDirectory}, 0, time.loop().Now());
  (void)time.Run(a.client->Exists("/n"));
  zk.SetLatency(std::chrono::milliseconds(10));
  zk.ExpireSession(*a.client);
  ASSERT_TRUE(time.RunUntil([&] { return a.client->state() == SessionState::kConnecting; }));
  std::vector<ReadOp> reads(1, ReadOp{ReadOp::Kind::kData, "/n/1"});
  auto acquired = time.Run(a.locker.TryAcquireFree(kLockDirectory, reads));
  ASSERT_TRUE(acquired);
  EXPECT_TRUE(a.locker.IsHeld(acquired->lock));
  time.Run(a.locker.Release(acquired->lock));
  EXPECT_THAT(Line(), IsEmpty());
}

// The effect of an operation whose answer was lost may not be visible yet on another server.
TEST_F(LockTest, ReadsAgainOnlyAfterASync) {
  a.faulty.FailNth(1, Fault::kAfter);
  ASSERT_TRUE(time.Run(a.locker.TryAcquire(kLockDirectory)));
  std::vector<std::string> names;
  for (const auto& call : a.faulty.calls()) names.push_back(call.name);
  EXPECT_THAT(names, ElementsAre("GetChildren", "Multi", "Sync", "GetChildren"));
}

// The same while another client holds the lock and then releases it.
TEST_F(LockTest, SurvivesAnyLostAnswerWhileWaiting) {
  for (Fault fault : {Fault::kBefore, Fault::kAfter}) {
    for (std::size_t n = 0; n < 10; ++n) {
      SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(fault), n));
      auto first = time.Run(a.locker.TryAcquire(kLockDirectory));
      ASSERT_TRUE(first);
      b.faulty.FailNth(n, fault);
      EXPECT_FALSE(time.Run(b.locker.Acquire(kLockDirectory, In(seconds(5)))));
      EXPECT_EQ(Line().size(), 1u);
      Outcome second;
      b.faulty.FailNth(n, fault);
      Spawn(b, second);
      time.Advance(seconds(5));
      EXPECT_EQ(Line().size(), 2u);
      time.Run(a.locker.Release(*first));
      time.Advance(seconds(5));
      ASSERT_TRUE(second.lock);
      time.Run(b.locker.Release(*second.lock));
      EXPECT_THAT(Line(), IsEmpty());
    }
  }
}

// A task that is cancelled at any moment leaves no contender.
TEST_F(LockTest, CancellingAtAnyMomentLeavesNothing) {
  zk.SetLatency(std::chrono::milliseconds(10));
  auto first = time.Run(a.locker.TryAcquire(kLockDirectory));
  for (int moment = 0; moment < 60; ++moment) {
    SCOPED_TRACE(moment);
    Outcome second;
    auto id = group.Spawn("acquire", Record(b.locker.Acquire(kLockDirectory, SteadyTime::max()), second));
    time.Advance(std::chrono::milliseconds(moment));
    group.Cancel(id);
    time.Advance(std::chrono::milliseconds(7));
    group.Cancel(id);  // again, during the clean-up
    ASSERT_TRUE(time.RunUntil([&] { return second.is_done; }));
    EXPECT_EQ(second.verdict, Verdict::kCancelled);
    EXPECT_EQ(Line().size(), 1u);
  }
}

// Many peers, random holds, connections that break and sessions that end: never two owners, and no
// contender is left in the end.
Task<> UseLock(VirtualTime& time, Peer& peer, Random& random, int rounds, std::set<std::string>& owners) {
  for (int round = 0; round < rounds; ++round) {
    std::optional<HeldLock> lock;
    try {
      SteadyTime deadline = time.loop().SteadyNow() + seconds(random.Below(20) + 1);
      lock = co_await peer.locker.Acquire(kLockDirectory, deadline);
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kLostSession);
    }
    if (!lock || !peer.locker.IsHeld(*lock)) continue;
    owners.insert(lock->path);
    co_await time.loop().SleepFor(std::chrono::milliseconds(random.Below(3000)));
    // A lost session ends ownership at the servers before the owner knows.
    owners.erase(lock->path);
    co_await peer.locker.Release(*lock);
  }
}

TEST_F(LockTest, NeverTwoOwnersWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    SeededRandom random(seed);
    zk.SetLatency(std::chrono::milliseconds(random.Below(50)));
    std::set<std::string> owners;
    for (Peer* peer : {&a, &b, &c}) {
      peer->faulty.FailRandomly(0.1, random);
      group.Spawn("use", UseLock(time, *peer, random, 20, owners));
    }
    while (group.size() > 0) {
      time.Advance(std::chrono::milliseconds(random.Below(500)));
      // Only owners whose contender still exists are owners.
      std::size_t standing = static_cast<std::size_t>(std::ranges::count_if(
          owners, [&](const std::string& path) { return zk.tree().Exists(path).has_value(); }));
      ASSERT_LE(standing, 1u);
      Client& victim = *(random.Below(2) ? a : b).client;
      switch (random.Below(20)) {
        case 0:
          zk.Disconnect(victim, random.Below(2) ? MemoryZk::UnderWay::kDone : MemoryZk::UnderWay::kNotDone);
          break;
        case 1:
          zk.ExpireSession(victim);
          break;
        default:
          for (Peer* peer : {&a, &b}) zk.Reconnect(*peer->client);
      }
    }
    EXPECT_THAT(Line(), IsEmpty());
  }
}

}  // namespace

}  // namespace nodepool::zk
