#include "base/testing/test_environment.h"
#include "launcher/cloud_fixture_for_test.h"
#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {

// What a launcher leaves when it dies at any moment, and how soon another launcher has cleaned it up: the
// table "When something dies" of ARCHITECTURE.md, row by row.

namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Call = testing::FaultyZk::Call;
using Fault = testing::FaultyZk::Fault;
using ::testing::IsEmpty;

class CrashTest : public CloudTest {
 protected:
  // The launcher dies at its first write for which `is_moment` is true, before it reaches the servers or
  // after they have carried it out.
  void DieAt(Running& launcher, Fault fault, std::function<bool(const Call&)> is_moment) {
    launcher.recorder->FailWhen([=, this](const Call& call) {
      if (is_dead_) return Fault::kBefore;
      is_dead_ = call.is_write && is_moment(call);
      return is_dead_ ? fault : Fault::kNone;
    });
  }
  // Lets time pass until the launcher is dead, or `is_over`.
  bool AwaitDeath(
      Running& launcher, std::function<bool()> is_over = [] { return false; }) {
    EXPECT_TRUE(Await([&] { return is_dead_ || is_over(); }));
    if (is_dead_) Kill(launcher);
    return is_dead_;
  }
  bool IsClean() {
    return Nodes().empty() && cloud().servers().empty() && Children("/nodepool/requests-lock").empty() &&
           Children("/nodepool/requests").empty();
  }

  bool is_dead_ = false;
};

// The launcher dies at every write of a request's life, from its acceptance to the removal of its machines.
class AnyMomentTest : public CrashTest, public ::testing::WithParamInterface<std::tuple<int, bool>> {};

constexpr int kMoments = 26;

TEST_P(AnyMomentTest, RequestIsServedAndNothingIsLeft) {  // BB-21, coordination.17.39
  AddCloud();
  Running& first = StartLauncher("np01");
  auto [moment, is_carried_out] = GetParam();
  int writes = 0;
  DieAt(first, is_carried_out ? Fault::kAfter : Fault::kBefore,
        [&writes, moment = moment](const Call&) { return writes++ == moment; });
  RequestId id = Request({"small", "small"});
  auto is_fulfilled = [&] { return Read(id)->state == RequestState::kFulfilled; };
  if (AwaitDeath(first, is_fulfilled)) StartLauncher("np02");
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(20)));
  EXPECT_THAT(Read(id)->declined_by, IsEmpty());
  std::vector<NodeId> served = NodesOf(id);
  EXPECT_EQ(std::set<NodeId>(served.begin(), served.end()).size(), 2u);
  auto nodes = Take(id);
  Return(nodes);
  if (launchers_.size() == 1 && AwaitDeath(first, [&] { return IsClean(); })) StartLauncher("np02");
  // Leaked machines take two sweeps, a minute apart.
  EXPECT_TRUE(Await([&] { return IsClean(); }, seconds(135)));
  bool is_last = moment == kMoments - 1;
  EXPECT_FALSE(is_last && is_dead_) << "the life of a request has more writes: add moments";
}

INSTANTIATE_TEST_SUITE_P(Writes, AnyMomentTest,
                         ::testing::Combine(::testing::Range(0, kMoments), ::testing::Bool()),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "CarriedOut" : "Lost");
                         });

// The same for many requests at once, whose writes go as common transactions: at every transaction, so that
// all or nothing of it is carried out, for several requests and nodes.
class AnyGroupTest : public CrashTest, public ::testing::WithParamInterface<std::tuple<int, bool>> {};

constexpr int kCrowd = 5;
constexpr int kGroups = kCrowd * kMoments / 2;  // at most half of what they make one after the other

TEST_P(AnyGroupTest, RequestsAreServedAndNothingIsLeft) {  // BB-21, coordination.17.39
  grouping_.at_once = 1;
  zk_.SetLatency(std::chrono::milliseconds(2));
  AddCloud();
  Running& first = StartLauncher("np01");
  auto [moment, is_carried_out] = GetParam();
  int transactions = 0;
  DieAt(first, is_carried_out ? Fault::kAfter : Fault::kBefore,
        [&transactions, moment = moment](const Call&) { return transactions++ == moment; });
  std::vector<RequestId> ids;
  for (int i = 0; i < kCrowd; ++i) ids.push_back(Request({"small", "small"}));
  auto are_fulfilled = [&] {
    return std::ranges::all_of(
        ids, [&](const RequestId& id) { return Read(id)->state == RequestState::kFulfilled; });
  };
  if (AwaitDeath(first, are_fulfilled)) StartLauncher("np02");
  ASSERT_TRUE(Await(are_fulfilled, seconds(20)));
  std::set<NodeId> served;
  std::vector<store::LockedNode> nodes;
  for (const RequestId& id : ids) {
    EXPECT_THAT(Read(id)->declined_by, IsEmpty());
    for (auto& node : Take(id)) {
      EXPECT_TRUE(served.insert(node.id()).second) << node.id().value << " was given to two requests";
      nodes.push_back(std::move(node));
    }
  }
  EXPECT_EQ(served.size(), 2u * kCrowd);
  Return(nodes);
  if (launchers_.size() == 1 && AwaitDeath(first, [&] { return IsClean(); })) StartLauncher("np02");
  EXPECT_TRUE(Await([&] { return IsClean(); }, seconds(135)));
  bool is_last = moment == kGroups - 1;
  EXPECT_FALSE(is_last && is_dead_) << "more transactions are made: are there no groups?";
}

INSTANTIATE_TEST_SUITE_P(Transactions, AnyGroupTest,
                         ::testing::Combine(::testing::Range(0, kGroups, testing::Often(1, 8)),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "CarriedOut" : "Lost");
                         });

TEST_F(CrashTest, PendingRequestIsResetTwoSecondsAfterItsLockIsGone) {  // BB-21
  AddCloud({.simulation = "create-latency: 3600"});
  Running& first = StartLauncher("np01");
  RequestId id =
      Request({"small"}, [](NodeRequest& request) { request.declined_by = {LauncherId("another")}; });
  ASSERT_TRUE(Await([&] { return cloud().servers().size() == 1; }));
  StartLauncher("np02");
  Kill(first);
  SteadyTime death = time_.loop().SteadyNow();
  std::optional<NodeRequest> reset;
  Subscription registration = WatchRequests([&](const RequestId&, const store::StoredRequest& request) {
    if (request.record.state == RequestState::kRequested) reset = request.record;
  });
  ASSERT_TRUE(Await([&] { return reset.has_value(); }));
  EXPECT_LE(time_.loop().SteadyNow() - death, seconds(2) + std::chrono::milliseconds(200));
  EXPECT_THAT(reset->nodes, IsEmpty());
  EXPECT_THAT(reset->declined_by, ::testing::ElementsAre(LauncherId("another")));
  registration.Reset();
  Change([](drivers::FakeSimulation& cloud) { cloud.create_latency = seconds(1); });
}

// After the session's time-out.
TEST_F(CrashTest, LocksEndWithTheSession) {
  AddCloud({.simulation = "create-latency: 30"});
  Running& first = StartLauncher("np01");
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  StartLauncher("np02");
  zk_.Disconnect(*first.client);
  time_.Advance(seconds(9));
  EXPECT_TRUE(IsLocked(Nodes()[0]));
  EXPECT_TRUE(
      Await([&] { return NodesIn(NodeState::kBuilding).empty() || !IsLocked(Nodes()[0]); }, seconds(3)));
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

TEST_F(CrashTest, InitNodeIsDeletedWithItsRequestOrWithinAMinute) {  // D-34
  for (bool is_request_gone : {false, true}) {
    SCOPED_TRACE(is_request_gone);
    is_dead_ = false;
    if (launchers_.empty()) {
      AddCloud();
      Put("/nodepool/nodes", "");
    }
    Running& first = StartLauncher("np-first");
    DieAt(first, Fault::kAfter,
          [](const Call& call) { return call.name == "Create" && call.path == "/nodepool/nodes/"; });
    RequestId id = Request({"small"});
    ASSERT_TRUE(AwaitDeath(first));
    auto init = NodesIn(NodeState::kInit);
    ASSERT_EQ(init.size(), 1u);
    if (is_request_gone) DeleteRequest(id);
    Running& second = StartLauncher("np-second");
    EXPECT_TRUE(Await([&] { return !Read(init[0]); }, seconds(is_request_gone ? 61 : 3)));
    if (!is_request_gone) {
      ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
      auto nodes = Take(id);
      Return(nodes);
      ASSERT_TRUE(Await([&] { return Nodes().empty(); }));
    }
    StopLauncher(second);
  }
}

TEST_F(CrashTest, BuildingNodeIsDeletedAtOnce) {  // coordination.17.39
  AddCloud({.simulation = "create-latency: 3600"});
  Running& first = StartLauncher("np01");
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return cloud().servers().size() == 1; }));
  std::string machine = cloud().servers().begin()->first;
  NodeId node = Nodes().at(0);
  StartLauncher("np02");
  Kill(first);
  EXPECT_TRUE(Await([&] { return !Read(node) && !cloud().servers().contains(machine); },
                    std::chrono::milliseconds(200)));
  DeleteRequest(id);
  Change([](drivers::FakeSimulation& cloud) { cloud.create_latency = seconds(1); });
}

TEST_F(CrashTest, DeletionIsTakenOverAtOnce) {
  AddCloud({.simulation = "delete-latency: 100"});
  Running& first = StartLauncher("np01");
  auto nodes = Use({"small"});
  NodeId node = nodes.at(0).id();
  Return(nodes);
  ASSERT_TRUE(Await([&] { return Read(node)->state == NodeState::kDeleting; }));
  StartLauncher("np02");
  Change([](drivers::FakeSimulation& cloud) { cloud.delete_latency = seconds(0); });
  Kill(first);
  EXPECT_TRUE(Await([&] { return !Read(node); }, std::chrono::milliseconds(200)));
}

// The requests of a launcher for itself are gone with its session.
TEST_F(CrashTest, ReadyNodeOfAVanishedRequestIsFreeAtOnce) {
  AddCloud();
  SetLabel("small", "min-ready: 1");
  Running& first = StartLauncher("np01");
  // Dead before it could free the node of its min-ready request.
  Subscription registration = WatchRequests([&](const RequestId&, const store::StoredRequest& request) {
    if (request.record.state == RequestState::kFulfilled) is_dead_ = true;
  });
  DieAt(first, Fault::kBefore, [](const Call&) { return false; });
  ASSERT_TRUE(AwaitDeath(first));
  registration.Reset();
  NodeId ready = NodesIn(NodeState::kReady).at(0);
  ASSERT_FALSE(Read(ready)->is_free());
  StartLauncher("np02");
  EXPECT_TRUE(Await([&] { return Read(ready)->is_free(); }, std::chrono::milliseconds(200)));
  RequestId next = Request({"small"});
  ASSERT_TRUE(AwaitState(next, RequestState::kFulfilled));
  EXPECT_THAT(NodesOf(next), ::testing::ElementsAre(ready)) << "it is not deleted, but used";
}

TEST_F(CrashTest, LockDirectoryOfAVanishedRequestIsRemovedWithinTwoMinutes) {  // D-06
  AddCloud();
  Running& first = StartLauncher("np01");
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  Kill(first);
  StartLauncher("np02");
  auto nodes = Take(id);
  EXPECT_THAT(Children("/nodepool/requests-lock"), ::testing::ElementsAre(id.value));
  EXPECT_TRUE(Await([&] { return Children("/nodepool/requests-lock").empty(); }, seconds(121)));
  Return(nodes);
}

// The cloud has made the machine, but its id could not be recorded.
TEST_F(CrashTest, MachineWithoutRecordIsDeletedWithinTwoMinutes) {  // BB-21
  AddCloud();
  Running& first = StartLauncher("np01");
  int writes = 0;
  DieAt(first, Fault::kBefore, [&](const Call&) { return writes++ > 0 && cloud().servers().size() == 1; });
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitDeath(first));
  ASSERT_EQ(cloud().servers().size(), 1u);
  std::string machine = cloud().servers().begin()->first;
  ASSERT_TRUE(Read(Nodes().at(0))->external_id.is_null());
  StartLauncher("np02");
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(5)));
  EXPECT_TRUE(Await([&] { return !cloud().servers().contains(machine); }, seconds(125)));
  EXPECT_EQ(cloud().servers().size(), 1u);
}

// No launcher runs while it happens; the next one finds everything.
TEST_F(CrashTest, NextLauncherFindsWhatTheLastOneLeft) {
  AddCloud({.simulation = "create-latency: 10"});
  Running& first = StartLauncher("np01");
  std::vector<RequestId> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(Request({"small"}));
  time_.Advance(seconds(5));
  Kill(first);
  time_.Advance(minutes(60));
  StartLauncher("np02");
  for (const RequestId& id : ids) ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(20)));
  EXPECT_TRUE(Await([&] { return Nodes().size() == 5 && cloud().servers().size() == 5; }, seconds(125)));
}

using std::chrono::minutes;
using std::chrono::seconds;

class SessionTest : public LauncherTest {};

// BB-30, LA-81, coordination.17.5
TEST_F(SessionTest, LostSessionDropsEverythingAndRecovers) {
  script().launch_time = seconds(20);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  std::string before = Children("/nodepool/components/pool").at(0);
  std::string launcher_id = *Read(Nodes()[0])->launcher;
  zk_.ExpireSession(*running.client);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, minutes(5)));
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1; })) << "the abandoned launch's node is deleted";
  auto pools = Children("/nodepool/components/pool");
  ASSERT_EQ(pools.size(), 1u);
  EXPECT_NE(pools[0], before) << "a new sequence number";
  EXPECT_EQ(NodeOf(id).launcher, launcher_id) << "the same id";
}

TEST_F(SessionTest, TheLauncherIsNotReadyWithoutZooKeeper) {  // D-64
  Running& running = StartLauncher();
  ASSERT_TRUE(running.launcher->is_ready());
  zk_.Disconnect(*running.client);
  time_.Advance(seconds(1));
  EXPECT_FALSE(running.launcher->is_ready());
  EXPECT_EQ(running.launcher->WhyNotReady(), "ZooKeeper cannot be reached.");
  zk_.Reconnect(*running.client);
  EXPECT_TRUE(Await([&] { return running.launcher->is_ready(); }));
}

// No event announces a deletion that a lost session interrupted before it held the lock; the sweep finds the
// node.
TEST_F(SessionTest, InterruptedDeletionIsTakenUpAgain) {
  Running& running = StartLauncher();
  for (int i = 0; i < 20; ++i) {
    AddNode(NodeState::kUsed);
    zk_.ExpireSession(*running.client);
  }
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, minutes(5)));
}

TEST_F(SessionTest, ShortInterruptionCostsNothing) {
  script().launch_time = seconds(20);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  zk_.Disconnect(*running.client);
  time_.Advance(seconds(5));
  zk_.Reconnect(*running.client);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(30)));
  EXPECT_EQ(script().launches, 1);
}

// D-05: what another launcher has taken over meanwhile is not touched.
TEST_F(SessionTest, LauncherThatComesBackWritesNothingUnderItsOldLocks) {
  script().launch_time = seconds(60);
  Running& sleeper = StartLauncher("np01");
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  zk_.Disconnect(*sleeper.client);
  zk_.ExpireSession(*sleeper.client);
  script().launch_time = seconds(0);
  StartLauncher("np02");
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  NodeRequest served = *Read(id);
  zk_.Reconnect(*sleeper.client);
  time_.Advance(minutes(5));
  EXPECT_EQ(ToJson(*Read(id)), ToJson(served));
  EXPECT_EQ(Nodes(), served.nodes);
}

class StopTest : public LauncherTest {
 protected:
  // Stops a launcher during a deletion that takes `delete_time`; returns how long the stop took.
  Duration StopWhileDeleting(Duration delete_time) {
    script().delete_time = delete_time;
    Running& running = StartLauncher();
    AddNode(NodeState::kUsed);
    EXPECT_TRUE(Await([&] { return script().deletions == 1; }));
    SteadyTime before = time_.loop().SteadyNow();
    StopLauncher(running);
    return time_.loop().SteadyNow() - before;
  }
};

TEST_F(StopTest, GivesRequestsBack) {  // D-24
  script().launch_time = std::chrono::hours(1);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  StopLauncher(running);
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  EXPECT_TRUE(Read(id)->declined_by.empty());
  EXPECT_FALSE(IsLocked(Nodes()[0]));
}

// Also requests that wait for capacity; the nodes that they already have become free.
TEST_F(StopTest, NodesOfUnfinishedRequestsBecomeFree) {  // D-24
  AddPool("cloud", "main", {"small", "large"}).max_servers = 2;
  Running& running = StartLauncher();
  auto nodes = Use({"large"});
  RequestId id = Request({"small", "small"});
  ASSERT_TRUE(Await([&] { return IsPaused() && NodesIn(NodeState::kReady).size() == 1; }));
  StopLauncher(running);
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  EXPECT_EQ(FreeNodes(), 1);
  EXPECT_FALSE(IsLocked(NodesIn(NodeState::kReady)[0]));
  EXPECT_THAT(Children("/nodepool/components/pool"), ::testing::IsEmpty());
  EXPECT_THAT(Children("/nodepool/components/launcher"), ::testing::IsEmpty());
  EXPECT_THAT(Children("/nodepool/requests-lock/" + id.value), ::testing::IsEmpty());
}

TEST_F(StopTest, EndsWhenZooKeeperIsAway) {  // D-24
  script().launch_time = std::chrono::hours(1);
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  zk_.Disconnect(*running.client);
  SteadyTime before = time_.loop().SteadyNow();
  StopLauncher(running);
  EXPECT_LE(time_.loop().SteadyNow() - before, seconds(40));
}

TEST_F(StopTest, DeletionsUnderWayAreFinished) {  // BB-34
  StopWhileDeleting(seconds(5));
  EXPECT_TRUE(Nodes().empty());
}

TEST_F(StopTest, TheTimeOfAGracefulStopIsASetting) {  // D-24
  config_->common.graceful_stop = seconds(4);
  EXPECT_LE(StopWhileDeleting(std::chrono::hours(1)), seconds(5));
}

TEST_F(StopTest, ALauncherThatStopsIsNotReady) {
  Running& running = StartLauncher();
  EXPECT_TRUE(running.launcher->is_ready());
  zk_.SetLatency(seconds(1));
  TaskGroup group(time_.loop(), log::Logger("test"));
  group.Spawn("stop", running.launcher->Stop());
  time_.Advance(seconds(1));
  EXPECT_FALSE(running.launcher->is_ready());
  EXPECT_EQ(running.launcher->WhyNotReady(), "The launcher is starting or stopping.");
  time_.Run(group.Join());
}

TEST_F(StopTest, EndsWhenACloudHangs) {  // D-24
  EXPECT_LE(StopWhileDeleting(std::chrono::hours(1)), seconds(40));
  EXPECT_EQ(NodesIn(NodeState::kDeleting).size(), 1u) << "left to the next launcher";
  EXPECT_FALSE(IsLocked(Nodes()[0]));
}

}  // namespace

}  // namespace nodepool::launcher
