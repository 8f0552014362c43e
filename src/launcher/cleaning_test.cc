#include "launcher/cleaners/cleanup_worker.h"
#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Call = testing::FaultyZk::Call;
using Fault = testing::FaultyZk::Fault;
using std::chrono::minutes;
using std::chrono::seconds;

class CleaningTest : public LauncherTest {
 protected:
  // A held node with this in its JSON.
  NodeId AddHeldNode(const std::string& hold_expiration) {
    NodeId id = AddNode(NodeState::kHold);
    std::string path = "/nodepool/nodes/" + id.value;
    std::string data = time_.Run(client_->Get(path))->data;
    const std::string none = "\"hold_expiration\": null";
    data.replace(data.find(none), none.size(), "\"hold_expiration\": " + hold_expiration);
    Put(path, data);
    return id;
  }
};

TEST_F(CleaningTest, DeadNodesAreDeletedOnceUnlocked) {  // BB-17, coordination.17.18
  StartLauncher();
  std::vector<NodeId> dead, kept;
  for (NodeState state : {NodeState::kUsed, NodeState::kInUse, NodeState::kFailed, NodeState::kAborted,
                          NodeState::kBuilding, NodeState::kDeleting, NodeState::kDeleted}) {
    dead.push_back(AddNode(state));
  }
  for (NodeState state : {NodeState::kHold, NodeState::kReady, NodeState::kTesting}) {
    kept.push_back(AddNode(state));
  }
  RequestId pending =
      Request({"small"}, [](NodeRequest& request) { request.state = RequestState::kPending; });
  auto lock = time_.Run(client_store_->requests.TryLock(pending));
  kept.push_back(AddNode(NodeState::kInit, [&](Node& node) { node.allocated_to = pending; }));
  kept.push_back(AddNode(NodeState::kUsed, [](Node& node) { node.provider = ProviderName("elsewhere"); }));
  EXPECT_TRUE(Await([&] { return Nodes() == kept; }, seconds(10)));
  time_.Advance(minutes(4));
  EXPECT_EQ(Nodes(), kept);
  EXPECT_THAT(script().deleted, ::testing::SizeIs(dead.size() - 1)) << "not again what is deleted already";
}

// Otherwise it would be handed out while our attempt to lock it is still queued.
TEST_F(CleaningTest, NoRequestTakesANodeThatIsBeingFreed) {
  Running& launcher = StartLauncher();
  RequestId first = Request({"small"});
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  NodeId node = NodesOf(first).at(0);
  bool is_tried = false;
  launcher.recorder->FailWhen([&](const testing::FaultyZk::Call& call) {
    bool is_lock = call.is_write && call.path.starts_with("/nodepool/nodes/" + node.value + "/lock");
    is_tried = is_tried || is_lock;
    return is_lock ? testing::FaultyZk::Fault::kBefore : testing::FaultyZk::Fault::kNone;
  });
  DeleteRequest(first);
  ASSERT_TRUE(Await([&] { return is_tried; }));
  ChangeNode(node, [](Node& record) { record.allocated_to = RequestId(); });  // another launcher was faster
  RequestId second = Request({"small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_NE(NodesOf(second).at(0), node);
  launcher.recorder->FailNever();
  time_.Advance(seconds(30));
  RequestId third = Request({"small"});
  ASSERT_TRUE(AwaitState(third, RequestState::kFulfilled));
  EXPECT_EQ(NodesOf(third).at(0), node);
}

// What is gone at once needs no transaction for `deleting` (launcher.md 21).
TEST_F(CleaningTest, OnlyADeletionThatTakesLongerIsShown) {
  std::set<NodeState> seen;
  Subscription registration = WatchNodes([&](const NodeId&, const Node& node) { seen.insert(*node.state); });
  StartLauncher();
  AddNode(NodeState::kUsed);
  ASSERT_TRUE(Await([&] { return Nodes().empty(); }));
  EXPECT_THAT(seen, ElementsAre(NodeState::kUsed));
  script().delete_time = seconds(3);
  AddNode(NodeState::kUsed);
  time_.Advance(seconds(1));
  EXPECT_THAT(seen, UnorderedElementsAre(NodeState::kUsed, NodeState::kDeleting));
  ASSERT_TRUE(Await([&] { return Nodes().empty(); }));
}

TEST_F(CleaningTest, LockedNodeIsLeftAlone) {  // BB-18, coordination.17.17
  StartLauncher();
  NodeId id = AddNode(NodeState::kReady);
  auto lock = time_.Run(client_store_->nodes.TryLock(id));
  SetState(*lock, NodeState::kUsed);
  time_.Advance(minutes(5));
  ASSERT_TRUE(Read(id));
  EXPECT_EQ(Read(id)->state, NodeState::kUsed);
  time_.Run(lock->Unlock());
  EXPECT_TRUE(Await([&] { return !Read(id); }, seconds(5)));
}

TEST_F(CleaningTest, FailingDeletionIsRepeatedAndTheNodeStaysUnlockedBetween) {  // BB-20
  script().delete_error = [](int deletion) -> std::optional<Error> {
    if (deletion < 3) return Error(Verdict::kRetry, "cloud is away");
    return std::nullopt;
  };
  StartLauncher();
  NodeId node = AddNode(NodeState::kUsed);
  ASSERT_TRUE(Await([&] { return script().deletions == 1 && Read(node)->state == NodeState::kDeleting; }));
  EXPECT_TRUE(Await([&] { return !IsLocked(node); }));
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, seconds(50)))
      << "after 5, 10 and 20 seconds, give or take 40 %";
  EXPECT_EQ(script().deletions, 4);
}

TEST_F(CleaningTest, AfterAnOutageDeletionsReturnOneByOneAndEachCauseWasLoggedOnce) {
  constexpr int kNodes = 20;
  std::vector<SteadyTime> tries;
  script().delete_error = [&](int) -> std::optional<Error> {
    tries.push_back(time_.loop().SteadyNow());
    return Error(Verdict::kRetry, "cloud is away");
  };
  StartLauncher();
  log::Capture log;
  for (int i = 0; i < kNodes; ++i) AddNode(NodeState::kUsed);
  ASSERT_TRUE(Await([&] { return tries.size() >= 3 * kNodes; }, minutes(1)));
  std::set<SteadyTime> second_round(tries.begin() + kNodes, tries.begin() + 2 * kNodes);
  EXPECT_GT(second_round.size(), kNodes / 2u);
  EXPECT_EQ(std::ranges::count(log.records(), log::Level::kError, &log::Record::level), kNodes);
  script().delete_error = nullptr;
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, minutes(2)));
}

TEST_F(CleaningTest, ReadyAndHeldNodesAgeOut) {  // LA-55, LA-57, LA-58, coordination.17.23
  label_config("small").max_ready_age = seconds(100);
  StartLauncher();
  NodeId ready = AddNode(NodeState::kReady);
  NodeId held = AddNode(NodeState::kHold, [](Node& node) { node.hold_expiration = 1; });
  NodeId as_text = AddHeldNode("\"1\"");
  NodeId without_limit = AddNode(NodeState::kHold, [](Node& node) { node.hold_expiration = 0; });
  EXPECT_TRUE(Await([&] { return !Read(held) && !Read(as_text); }, seconds(70)));
  time_.Advance(seconds(20));
  EXPECT_TRUE(Read(ready)) << "not a second before";
  EXPECT_TRUE(Await([&] { return Nodes() == std::vector<NodeId>({without_limit}); }, minutes(2)));
}

TEST_F(CleaningTest, HoldExpirationThatIsNotANumberIsIgnored) {  // LA-59, coordination.17.24
  StartLauncher();
  NodeId id = AddHeldNode("\"notanumber\"");
  EXPECT_EQ(Read(id)->hold_expiration, 0);
  time_.Advance(minutes(60));
  EXPECT_TRUE(Read(id));
}

TEST_F(CleaningTest, MaxHoldAgeAndOwnExpirationTheSmallerCounts) {  // LA-56, LA-60, LA-61
  config_->common.max_hold_age = minutes(20);
  StartLauncher();
  NodeId plain = AddNode(NodeState::kHold, [](Node& node) { node.comment = "held for inspection"; });
  NodeId shorter = AddNode(NodeState::kHold, [](Node& node) { node.hold_expiration = 120; });
  NodeId longer = AddNode(NodeState::kHold, [](Node& node) { node.hold_expiration = 36000; });
  EXPECT_TRUE(Await([&] { return !Read(shorter); }, minutes(4)));
  EXPECT_THAT(Nodes(), UnorderedElementsAre(plain, longer));
  time_.Advance(minutes(15));
  EXPECT_THAT(Nodes(), UnorderedElementsAre(plain, longer));
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, minutes(4)));
}

TEST_F(CleaningTest, SmallestReadyAgeOfTheLabelsCountsUnlessAllocated) {  // BB-29
  intervals_.cleanup = seconds(1);
  AddPool("cloud", "main", {"small", "large"});
  label_config("small").max_ready_age = seconds(1000);
  label_config("large").max_ready_age = seconds(10);
  StartLauncher();
  RequestId owner = Request({"large"});
  ASSERT_TRUE(AwaitState(owner, RequestState::kFulfilled));
  NodeId allocated = Read(owner)->nodes[0];
  NodeId both = AddNode(NodeState::kReady, [](Node& node) { node.type.emplace_back("large"); });
  time_.Advance(seconds(9));
  EXPECT_TRUE(Read(both));
  EXPECT_TRUE(Await([&] { return !Read(both); }, seconds(3)));
  time_.Advance(minutes(60));
  EXPECT_TRUE(Read(allocated));
}

TEST_F(CleaningTest, LostRequestIsResetWithItsNodes) {  // LA-63, coordination.17.20, D-34
  RequestId id = Request(
      {"small"}, [&](NodeRequest& request) { request.SetState(RequestState::kPending, time_.loop().Now()); });
  auto allocated = [&](Node& node) { node.allocated_to = id; };
  NodeId node = AddNode(NodeState::kReady, allocated);
  NodeId init = AddNode(NodeState::kInit, allocated);
  StartLauncher();
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_THAT(Read(id)->nodes, ElementsAre(node));
  EXPECT_TRUE(Await([&] { return !Read(init); }));
}

// A launcher that stopped while it took the node gave the request back without it; another launcher serves
// the request now.
TEST_F(CleaningTest, NodeThatItsRequestDoesNotHaveBecomesFree) {
  RequestId id = Request({"small", "small"}, [&](NodeRequest& request) {
    request.SetState(RequestState::kPending, time_.loop().Now());
  });
  Put("/nodepool/requests-lock/" + id.value + "/0123456789abcdef0123456789abcdef__lock__0000000000", "");
  RequestId fulfilled = Request({"small"}, [&](NodeRequest& request) {
    request.SetState(RequestState::kFulfilled, time_.loop().Now());
  });
  NodeId left = AddNode(NodeState::kReady, [&](Node& node) { node.allocated_to = id; });
  NodeId had = AddNode(NodeState::kReady, [&](Node& node) { node.allocated_to = fulfilled; });
  StartLauncher();
  EXPECT_TRUE(Await([&] { return Read(left)->is_free(); }, seconds(65)));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  EXPECT_EQ(Read(had)->allocated_to, fulfilled);
}

TEST_F(CleaningTest, UnfinishedNodeOfAVanishedRequest) {  // D-34
  StartLauncher();
  NodeId id = AddNode(NodeState::kInit, [](Node& node) { node.allocated_to = RequestId("100-0000000123"); });
  EXPECT_TRUE(Await([&] { return !Read(id); }, seconds(65)));
}

TEST_F(CleaningTest, ZnodeWithoutDataIsRemoved) {  // LA-89, coordination.17.21
  StartLauncher();
  Put("/nodepool/nodes/0000000999/lock", "");
  EXPECT_TRUE(Await([&] { return Children("/nodepool/nodes").empty(); }, seconds(65)));
}

// D-06: another program that locked a node which was just removed has created it again and written its state.
// No driver could delete it; from its age it is clear that no program is about to write the rest.
TEST_F(CleaningTest, DeadNodeWithoutProviderIsRemovedByAge) {
  StartLauncher();
  auto without_provider = [](Node& node) { node.provider = ProviderName(); };
  NodeId dead = AddNode(NodeState::kDeleting, without_provider);
  NodeId held = AddNode(NodeState::kHold, without_provider);
  NodeId locked = AddNode(NodeState::kDeleting, without_provider);
  Put("/nodepool/nodes/" + locked.value + "/lock/0123456789abcdef0123456789abcdef__lock__0000000000", "");
  time_.Advance(minutes(5) - seconds(1));
  EXPECT_TRUE(Read(dead));
  EXPECT_TRUE(Await([&] { return !Read(dead); }, seconds(62)));
  time_.Advance(minutes(10));
  EXPECT_TRUE(Read(held) && Read(locked));
}

// D-06 in place of BB-26: a lock directory without contenders is removed with its request, also when another
// launcher served it; one with a contender stays.
TEST_F(CleaningTest, LockDirectoriesOfVanishedRequests) {  // BB-26, D-06, coordination.17.26
  StartLauncher();
  Put("/nodepool/requests-lock/100-0000000900", "");
  Put("/nodepool/requests-lock/100-0000000901/0123456789abcdef0123456789abcdef__lock__0000000000", "");
  time_.Advance(seconds(50));
  EXPECT_THAT(Children("/nodepool/requests-lock"), ::testing::Contains("100-0000000900"));
  EXPECT_TRUE(Await(
      [&] { return Children("/nodepool/requests-lock") == std::vector<std::string>({"100-0000000901"}); },
      minutes(3)));
  time_.Advance(std::chrono::hours(9));
  EXPECT_THAT(Children("/nodepool/requests-lock"), ElementsAre("100-0000000901"));
}

// The last write of a deletion fails, or an older program left the node like this.
TEST_F(CleaningTest, RecordThatCouldNotBeRemovedIsRemovedLater) {  // LA-91
  Running& running = StartLauncher();
  auto fails_once = std::make_shared<bool>(true);
  NodeId id = AddNode(NodeState::kReady);
  running.recorder->FailWhen([=, this](const testing::FaultyZk::Call& call) {
    bool is_removal = call.name == "Multi" && script().deleted == std::vector<NodeId>({id});
    if (!is_removal || !std::exchange(*fails_once, false)) return testing::FaultyZk::Fault::kNone;
    return testing::FaultyZk::Fault::kBefore;
  });
  running.recorder->SetError(Error(Verdict::kFail, "refused"));
  ChangeNode(id, [this](Node& node) { node.SetState(NodeState::kUsed, time_.loop().Now()); });
  EXPECT_TRUE(Await([&] { return !Read(id); }));
  EXPECT_FALSE(*fails_once);
}

class CloudCleaningTest : public CloudTest {};

TEST_F(CloudCleaningTest, NodeMarkedDeletingIsReplaced) {  // LA-44
  AddCloud();
  SetLabel("small", "min-ready: 1");
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  NodeId id = Nodes()[0];
  ChangeNode(id, [this](Node& node) { node.SetState(NodeState::kDeleting, time_.loop().Now()); });
  EXPECT_TRUE(Await([&] { return !Read(id) && FreeNodes() == 1; }));
  EXPECT_EQ(cloud().servers().size(), 1u);
}

TEST_F(CloudCleaningTest, NodeWithoutMachineNeedsNoCloud) {  // BB-19
  AddCloud();
  StartLauncher();
  cloud().FailNextDeletes(1000);
  AddNode(NodeState::kDeleting);
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }, seconds(1)));
  cloud().FailNextDeletes(0);
}

TEST_F(CloudCleaningTest, MachineThatCannotBeDeletedKeepsItsRecord) {  // LA-52
  AddCloud();
  SetLabel("small", "min-ready: 1");
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  auto nodes = Use({"small"});
  NodeId id = nodes.at(0).id();
  cloud().FailNextDeletes(1'000'000);
  Return(nodes);
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1 && Read(id)->state == NodeState::kDeleting; }));
  time_.Advance(minutes(10));
  EXPECT_EQ(Read(id)->state, NodeState::kDeleting);
  cloud().FailNextDeletes(0);
  EXPECT_TRUE(Await([&] { return !Read(id); }));
}

TEST_F(CloudCleaningTest, LeakedMachineIsDeletedInTheSecondSweep) {  // LA-54, BB-27
  AddCloud();
  SetLabel("small", "min-ready: 1");
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  for (std::string owner : {"", "another provider"}) {
    drivers::FakeServerRequest foreign;
    foreign.flavor = "Fake Flavor";
    foreign.metadata = {{"nodepool_node_id", "0000099999"}};
    if (!owner.empty()) foreign.metadata["nodepool_provider_name"] = owner;
    cloud().CreateServer(foreign);
  }
  time_.Run(zk::DeleteRecursive(*client_, "/nodepool/nodes/" + Nodes()[0].value));
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; })) << "replaced";
  EXPECT_EQ(cloud().servers().size(), 4u);
  SteadyTime start = time_.loop().SteadyNow();
  ASSERT_TRUE(Await([&] { return cloud().servers().size() == 3; }, minutes(3)));
  EXPECT_GT(time_.loop().SteadyNow() - start, seconds(60));
  time_.Advance(minutes(10));
  EXPECT_EQ(cloud().servers().size(), 3u) << "foreign machines are never deleted";
}

TEST_F(CloudCleaningTest, LeakedMachineThatCannotBeDeletedStaysListed) {  // LA-53
  AddCloud();
  StartLauncher();
  auto nodes = Use({"small"});
  cloud().FailNextDeletes(1'000'000);
  time_.Run(zk::DeleteRecursive(*client_, "/nodepool/nodes/" + nodes.at(0).id().value));
  time_.Advance(minutes(10));
  EXPECT_EQ(cloud().servers().size(), 1u);
  cloud().FailNextDeletes(0);
  EXPECT_TRUE(Await([&] { return cloud().servers().empty(); }));
  EXPECT_THAT(Nodes(), IsEmpty());
}

class LostRequestsTest : public LauncherTest {
 protected:
  static constexpr const char* kLocks = "/nodepool/requests-lock";

  // A request whose launcher died after it had begun to create a node.
  RequestId LostRequest() {
    RequestId id = Request({"small"}, [&](NodeRequest& request) {
      request.SetState(RequestState::kPending, time_.loop().Now());
    });
    node_ = AddNode(NodeState::kInit, [&](Node& node) { node.allocated_to = id; });
    return id;
  }
  // Calls `act` just before the launcher's first write for which `is_moment` is true.
  void JustBefore(Running& launcher, std::function<bool(const Call&)> is_moment, std::function<void()> act) {
    launcher.recorder->FailWhen([=, this](const Call& call) {
      if (has_acted_ || !call.is_write || !is_moment(call)) return Fault::kNone;
      has_acted_ = true;
      act();
      return Fault::kNone;
    });
  }
  void Erase(const std::string& path) {
    zk::Result<zk::Children> children = zk_.tree().GetChildren(path);
    if (!children) return;
    for (const std::string& name : children->names) Erase(path + "/" + name);
    EXPECT_TRUE(zk_.tree().Delete({path, -1}, 0)) << path;
  }

  NodeId node_;
  bool has_acted_ = false;
  log::Capture log_;
};

// D-06: the consumer is done with the request while the launcher's cache does not yet show the node launched
// for it, so that the request's run has not ended.
TEST_F(LostRequestsTest, LockDirectoryIsRemovedWhenTheRequestWasGoneBeforeItsRunEnded) {
  Running& launcher = StartLauncher();
  bool does_cache_lag = true;
  launcher.recorder->HideOwnWrites();
  launcher.recorder->FailWhen([&](const Call& call) {
    bool is_cache = call.name == "Get" && call.path.starts_with("/nodepool/nodes/");
    return is_cache && does_cache_lag ? Fault::kBefore : Fault::kNone;
  });
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  DeleteRequest(id);
  time_.Advance(seconds(1));
  EXPECT_THAT(Children(kLocks), Contains(id.value));
  does_cache_lag = false;
  EXPECT_TRUE(Await([&] { return Children(kLocks).empty(); }, seconds(15)));
}

// D-06, D-08: its record is still there, though nobody can read it.
TEST_F(LostRequestsTest, LockDirectoryOfAMalformedRequestStays) {
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  Put("/nodepool/requests/" + id.value, "{");
  time_.Advance(seconds(150));
  EXPECT_THAT(Children(kLocks), Contains(id.value));
  DeleteRequest(id);
  EXPECT_TRUE(Await([&] { return Children(kLocks).empty(); }, seconds(150)));
}

TEST_F(LostRequestsTest, ARequestThatVanishesWhileItIsResetIsNoError) {
  RequestId id = LostRequest();
  std::string lock = std::string(kLocks) + "/" + id.value;
  Put(lock, "");
  Running& launcher = StartLauncher();
  JustBefore(
      launcher, [lock](const Call& call) { return call.path.starts_with(lock + "/"); },
      [this, id, lock] {
        Erase("/nodepool/requests/" + id.value);
        Erase(lock);
      });
  ASSERT_TRUE(Await([&] { return has_acted_; }));
  time_.Advance(seconds(5));
  EXPECT_EQ(log_.Count("reset lost request failed"), 0);
  EXPECT_TRUE(Children(kLocks).empty());
}

TEST_F(LostRequestsTest, ANodeThatVanishesDoesNotPreventTheReset) {
  RequestId id = LostRequest();
  Running& launcher = StartLauncher();
  std::string node = "/nodepool/nodes/" + node_.value;
  JustBefore(
      launcher, [node](const Call& call) { return call.name == "Multi" && call.path == node; },
      [this, node] { Erase(node); });
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(5)));
  EXPECT_TRUE(has_acted_);
  EXPECT_EQ(log_.Count("reset lost request failed"), 0);
}

}  // namespace

}  // namespace nodepool::launcher
