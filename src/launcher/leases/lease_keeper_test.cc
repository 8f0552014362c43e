#include "launcher/leases/lease_keeper.h"

#include "base/testing/test_environment.h"
#include "launcher/launcher_fixture_for_test.h"
#include "model/node_request.h"

namespace nodepool::launcher {

namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeaseKeeperTest : public LauncherTest {
 protected:
  LeaseId Lend(std::vector<std::string> labels = {"small"}, std::int64_t lease_seconds = 300) {
    LeaseId id(random_.UuidHex());
    Lease lease = OfLabels(std::move(labels), lease_seconds);
    NodeRequest request = RequestFor(id, lease, time_.loop().Now());
    EXPECT_TRUE(time_.Run(client_store_->leases.Create(id, std::move(lease), std::move(request), "200")));
    return id;
  }
  static Lease OfLabels(std::vector<std::string> labels, std::int64_t lease_seconds = 300) {
    Lease lease;
    lease.state = LeaseState::kWaiting;
    lease.client = "ci";
    lease.lease_seconds = lease_seconds;
    for (std::string& label : labels) lease.labels.emplace_back(std::move(label));
    return lease;
  }
  std::optional<Lease> ReadLease(const LeaseId& id) {
    std::optional<store::StoredLease> lease = time_.Run(client_store_->leases.Read(id));
    return lease ? std::optional(lease->record) : std::nullopt;
  }
  bool AwaitLease(const LeaseId& id, LeaseState state, Duration limit = seconds(120)) {
    return Await([&] { return ReadLease(id) && ReadLease(id)->state == state; }, limit);
  }
  bool AwaitGone(const LeaseId& id, Duration limit = seconds(120)) {
    return Await([&] { return !ReadLease(id); }, limit);
  }
  LeaseId HeldLease(std::vector<std::string> labels = {"small"}, std::int64_t lease_seconds = 300) {
    LeaseId id = Lend(std::move(labels), lease_seconds);
    EXPECT_TRUE(AwaitLease(id, LeaseState::kHeld));
    return id;
  }
  void Write(const LeaseId& id, std::function<void(Lease&)> change) {
    time_.Run(client_store_->leases.Update(id, [change](Lease& lease) {
      change(lease);
      return Change::kWrite;
    }));
  }
  void Renew(const LeaseId& id) {
    Write(id, [now = time_.loop().Now()](Lease& lease) { lease.renewed_time = now; });
  }
  void End(const LeaseId& id) {
    Write(id, [](Lease& lease) { lease.state = LeaseState::kEnding; });
  }
  // A lease whose request is fulfilled with this node.
  LeaseId LendWith(store::LockedNode& node) {
    LeaseId id(random_.UuidHex());
    Lease lease = OfLabels({"small"});
    NodeRequest request = RequestFor(id, lease, time_.loop().Now());
    request.SetState(RequestState::kFulfilled, time_.loop().Now());
    request.nodes = {node.id()};
    lease.request = time_.Run(client_store_->requests.Create("200", request, false));
    time_.Run(node.Update([&](Node& record) {
      record.allocated_to = lease.request;
      return Change::kWrite;
    }));
    Put("/nodepool/leases/" + id.value, ToJson(lease));
    return id;
  }
  std::optional<std::string> OwnerOf(const NodeId& node) {
    return time_.Run(client_store_->nodes.Owner(node));
  }
  std::vector<std::string> Requests() { return Children("/nodepool/requests"); }
  // Unfinished nodes of a launcher that died are cleaned up when they are five minutes old.
  static constexpr Duration kCleanUp = std::chrono::minutes(10);
  // Every node but those is free.
  bool AwaitInUse(std::vector<NodeId> nodes) {
    return Await(
        [&] {
          return NodesIn(NodeState::kInUse) == nodes &&
                 Nodes().size() == nodes.size() + static_cast<std::size_t>(FreeNodes());
        },
        kCleanUp);
  }
  // Nothing is left of leases, requests and nodes but free ones.
  bool AwaitClean() {
    auto is_clean = [&] { return Requests().empty() && Children("/nodepool/leases").empty(); };
    return Await(is_clean, kCleanUp) && AwaitInUse({});
  }

  log::Capture log_;
};

// REQ-1
TEST_F(LeaseKeeperTest, NodesAreInUseForTheClient) {
  StartLauncher();
  LeaseId id = HeldLease({"small", "large"});
  Lease lease = *ReadLease(id);
  ASSERT_THAT(lease.nodes, SizeIs(2));
  for (std::size_t i = 0; i < 2; ++i) {
    Node node = *Read(lease.nodes[i]);
    EXPECT_EQ(node.state, NodeState::kInUse);
    EXPECT_TRUE(node.has_label(lease.labels[i]));
    EXPECT_EQ(OwnerOf(lease.nodes[i]), "lease:" + id.value);
  }
  EXPECT_THAT(Requests(), IsEmpty());
  End(id);
  EXPECT_TRUE(AwaitClean());
  EXPECT_EQ(script().deletions, 2);
}

// REQ-1
TEST_F(LeaseKeeperTest, AFreeNodeIsReused) {
  NodeId free = AddNode(NodeState::kReady, [](Node& node) { node.external_id = "i-7"; });
  StartLauncher();
  LeaseId id = HeldLease();
  EXPECT_THAT(ReadLease(id)->nodes, ElementsAre(free));
}

// REQ-3
TEST_F(LeaseKeeperTest, ALeaseLastsAsLongAsItIsRenewed) {
  StartLauncher();
  LeaseId id = HeldLease({"small"}, 30);
  for (int i = 0; i < 6; ++i) {
    time_.Advance(seconds(20));
    ASSERT_TRUE(ReadLease(id)) << i;
    Renew(id);
  }
  time_.Advance(seconds(29));
  EXPECT_TRUE(ReadLease(id));
  EXPECT_TRUE(AwaitGone(id, seconds(2)));
  EXPECT_EQ(log_.Count("was not renewed and has expired"), 1);
  EXPECT_TRUE(AwaitClean());
}

// REQ-3
TEST_F(LeaseKeeperTest, WaitingAndFailedLeasesExpireToo) {
  AddForeignPool([](Component& pool) { pool.supported_labels = {LabelName("rare")}; });
  StartLauncher();
  LeaseId failed = Lend({"unknown"}, 30);
  LeaseId waiting = Lend({"rare"}, 30);
  time_.Advance(seconds(20));
  ASSERT_TRUE(ReadLease(waiting));
  ASSERT_TRUE(ReadLease(failed));
  EXPECT_TRUE(AwaitGone(waiting, seconds(30)));
  EXPECT_TRUE(AwaitGone(failed, seconds(5)));
  EXPECT_TRUE(AwaitClean());
}

// REQ-4
TEST_F(LeaseKeeperTest, AWaitingLeaseEndsWithItsRequest) {
  AddForeignPool([](Component& pool) { pool.supported_labels = {LabelName("rare")}; });
  StartLauncher();
  LeaseId id = Lend({"rare"});
  time_.Advance(seconds(5));
  EXPECT_EQ(ReadLease(id)->state, LeaseState::kWaiting);
  EXPECT_THAT(Requests(), SizeIs(1));
  End(id);
  EXPECT_TRUE(AwaitClean());
}

// REQ-5
TEST_F(LeaseKeeperTest, ALeaseFailsWithTheReasonsOfItsRequest) {
  StartLauncher();
  LeaseId id = Lend({"unknown"});
  ASSERT_TRUE(AwaitLease(id, LeaseState::kFailed));
  EXPECT_THAT(*ReadLease(id)->failure, HasSubstr("unknown"));
  EXPECT_THAT(Requests(), IsEmpty());
  End(id);
  EXPECT_TRUE(AwaitClean());
}

// REQ-5
TEST_F(LeaseKeeperTest, ALeaseFailsWhenAnOperatorDeletesItsRequest) {
  AddForeignPool([](Component& pool) { pool.supported_labels = {LabelName("rare")}; });
  StartLauncher();
  LeaseId id = Lend({"rare"});
  DeleteRequest(ReadLease(id)->request);
  ASSERT_TRUE(AwaitLease(id, LeaseState::kFailed));
  EXPECT_THAT(*ReadLease(id)->failure, HasSubstr("deleted"));
}

// REQ-8
TEST_F(LeaseKeeperTest, NodesThatAnOperatorTakesAreDropped) {
  StartLauncher();
  LeaseId id = HeldLease({"small", "small", "small"});
  std::vector<NodeId> nodes = ReadLease(id)->nodes;
  ChangeNode(nodes[0], [this](Node& node) { node.SetState(NodeState::kHold, time_.loop().Now()); });
  ChangeNode(nodes[1], [this](Node& node) { node.SetState(NodeState::kDeleting, time_.loop().Now()); });
  EXPECT_TRUE(Await([&] { return ReadLease(id)->nodes.size() == 1; }));
  EXPECT_TRUE(Await([&] { return !Read(nodes[1]); }));
  EXPECT_EQ(Read(nodes[0])->state, NodeState::kHold);
  EXPECT_FALSE(IsLocked(nodes[0]));
  End(id);
  EXPECT_TRUE(Await([&] { return Nodes() == std::vector{nodes[0]}; }));
}

// REQ-9: the web server died between its two writes.
TEST_F(LeaseKeeperTest, TheRequestOfALeaseIsFoundAgain) {
  StartLauncher();
  LeaseId id(random_.UuidHex());
  Lease lease = OfLabels({"small"});
  NodeRequest request = RequestFor(id, lease, time_.loop().Now());
  time_.Run(client_store_->requests.Create("200", request, false));
  Put("/nodepool/leases/" + id.value, ToJson(lease));
  EXPECT_TRUE(AwaitLease(id, LeaseState::kHeld, seconds(10)));
}

// REQ-31: the keeper sees the lease between the web server's two writes.
TEST_F(LeaseKeeperTest, NodesAreHandedOverWithoutDelay) {
  StartLauncher();
  HeldLease();
  for (int i = 0; i < 5; ++i) {
    SteadyTime start = time_.loop().SteadyNow();
    HeldLease();
    EXPECT_LT(time_.loop().SteadyNow() - start, std::chrono::milliseconds(200)) << i;
  }
}

// REQ-31
TEST_F(LeaseKeeperTest, ALeaseEndsWhileItsRequestIsMissing) {
  StartLauncher();
  End(HeldLease());
  LeaseId id(random_.UuidHex());
  Put("/nodepool/leases/" + id.value, ToJson(OfLabels({"small"})));
  time_.Advance(std::chrono::milliseconds(500));
  SteadyTime start = time_.loop().SteadyNow();
  End(id);
  EXPECT_TRUE(AwaitGone(id));
  EXPECT_LT(time_.loop().SteadyNow() - start, std::chrono::milliseconds(200));
}

// REQ-5
TEST_F(LeaseKeeperTest, ALeaseWithoutAnyRequestFails) {
  StartLauncher();
  LeaseId id(random_.UuidHex());
  Put("/nodepool/leases/" + id.value, ToJson(OfLabels({"small"})));
  EXPECT_TRUE(AwaitLease(id, LeaseState::kFailed, seconds(10)));
}

// REQ-11
TEST_F(LeaseKeeperTest, NodesAndRequestsOfVanishedLeasesAreGivenBack) {
  AddForeignPool([](Component& pool) { pool.supported_labels = {LabelName("rare")}; });
  StartLauncher();
  LeaseId held = HeldLease();
  LeaseId waiting = Lend({"rare"});
  time_.Run(client_->Delete("/nodepool/leases/" + held.value, -1));
  time_.Run(client_->Delete("/nodepool/leases/" + waiting.value, -1));
  EXPECT_TRUE(AwaitClean());
  EXPECT_EQ(log_.Count("its node is given back"), 1);
}

// REQ-11: nobody contends for the keeping until a launcher sees such a node.
TEST_F(LeaseKeeperTest, AnOrphanIsFoundByALauncherThatStarts) {
  Running& first = StartLauncher();
  LeaseId id = HeldLease();
  StopLauncher(first);
  time_.Run(client_->Delete("/nodepool/leases/" + id.value, -1));
  StartLauncher("np02");
  EXPECT_TRUE(AwaitClean());
}

TEST_F(LeaseKeeperTest, NobodyContendsWithoutLeases) {
  StartLauncher();
  time_.Advance(seconds(90));
  EXPECT_THAT(Children("/nodepool/elections/leases"), IsEmpty());
}

// REQ-12
TEST_F(LeaseKeeperTest, ANodeThatAnotherProcessLocksMakesTheLeaseFail) {
  StartLauncher();
  NodeId free = AddNode(NodeState::kReady, [](Node& node) { node.external_id = "i-7"; });
  auto lock = time_.Run(client_store_->nodes.TryLock(free));
  ASSERT_TRUE(lock);
  LeaseId id = LendWith(*lock);
  time_.Advance(seconds(25));
  EXPECT_EQ(ReadLease(id)->state, LeaseState::kWaiting) << "a launcher may lock it for a moment";
  ASSERT_TRUE(AwaitLease(id, LeaseState::kFailed, seconds(10)));
  EXPECT_THAT(*ReadLease(id)->failure, HasSubstr("locked by another process"));
  EXPECT_THAT(Requests(), IsEmpty());
  time_.Run(lock->Unlock());
}

// REQ-31
TEST_F(LeaseKeeperTest, ALeaseEndsWhileItsNodeIsLockedByAnotherProcess) {
  StartLauncher();
  NodeId free = AddNode(NodeState::kReady, [](Node& node) { node.external_id = "i-7"; });
  auto lock = time_.Run(client_store_->nodes.TryLock(free));
  ASSERT_TRUE(lock);
  LeaseId id = LendWith(*lock);
  time_.Advance(seconds(10));
  SteadyTime start = time_.loop().SteadyNow();
  End(id);
  EXPECT_TRUE(AwaitGone(id));
  EXPECT_LT(time_.loop().SteadyNow() - start, std::chrono::milliseconds(200));
  time_.Run(lock->Unlock());
  EXPECT_TRUE(AwaitClean());
}

// REQ-31
TEST_F(LeaseKeeperTest, NodesAreHandedOverSoonAfterTheyAreUnlocked) {
  StartLauncher();
  NodeId free = AddNode(NodeState::kReady, [](Node& node) { node.external_id = "i-7"; });
  auto lock = time_.Run(client_store_->nodes.TryLock(free));
  ASSERT_TRUE(lock);
  LeaseId id = LendWith(*lock);
  time_.Advance(seconds(10));
  time_.Run(lock->Unlock());
  EXPECT_TRUE(AwaitLease(id, LeaseState::kHeld, seconds(1)));
}

// REQ-30
TEST_F(LeaseKeeperTest, AFailedLeaseEndsSoon) {
  StartLauncher();
  LeaseId id = Lend({"unknown"}, 86'400);
  ASSERT_TRUE(AwaitLease(id, LeaseState::kFailed));
  time_.Advance(std::chrono::minutes(4));
  EXPECT_TRUE(ReadLease(id));
  EXPECT_TRUE(AwaitGone(id, seconds(62)));
  EXPECT_TRUE(AwaitClean());
}

// REQ-11: the lock of a node is another's although the lease has it.
TEST_F(LeaseKeeperTest, ANodeWhoseLockIsLostIsDropped) {
  StartLauncher();
  LeaseId id = HeldLease({"small", "small"});
  std::vector<NodeId> nodes = ReadLease(id)->nodes;
  std::string directory = "/nodepool/nodes/" + nodes[0].value + "/lock";
  Put(directory + "/" + std::string(32, '0') + "__lock__0000000000", "another");
  for (const std::string& name : Children(directory)) {
    if (!name.starts_with("0000000000000000")) time_.Run(client_->Delete(directory + "/" + name, -1));
  }
  EXPECT_TRUE(Await([&] { return ReadLease(id)->nodes == std::vector{nodes[1]}; }));
}

// REQ-13
TEST_F(LeaseKeeperTest, ANewKeeperGivesEachLeaseItsFullTime) {
  Running& first = StartLauncher("np01");
  StartLauncher("np02");
  LeaseId id = HeldLease({"small"}, 30);
  time_.Advance(seconds(25));
  Kill(first);
  time_.Advance(seconds(20));
  EXPECT_TRUE(ReadLease(id));
  EXPECT_TRUE(AwaitGone(id, seconds(60)));
}

// REQ-13
TEST_F(LeaseKeeperTest, AKeeperThatWasWithoutZooKeeperDoesSo) {
  Running& keeper = StartLauncher();
  LeaseId id = HeldLease({"small"}, 30);
  time_.Advance(seconds(29));
  zk_.Disconnect(*keeper.client);
  time_.Advance(seconds(5));
  zk_.Reconnect(*keeper.client);
  time_.Advance(seconds(29));
  EXPECT_TRUE(ReadLease(id)) << "the time begins when it is connected again";
  EXPECT_TRUE(AwaitGone(id, seconds(3)));
}

// REQ-9: the keeper dies after each of its writes in turn; another one ends in the same place.
TEST_F(LeaseKeeperTest, AnotherKeeperContinuesAfterEachWrite) {
  for (std::size_t writes = 0; writes < 24; ++writes) {
    SCOPED_TRACE(writes);
    Running& mortal = StartLauncher(fmt::format("mortal{}", writes));
    std::size_t seen = 0;
    bool is_dead = false;
    mortal.recorder->FailWhen([&](const testing::FaultyZk::Call& call) {
      if (!call.is_write) return testing::FaultyZk::Fault::kNone;
      if (seen++ == writes && !is_dead) {
        is_dead = true;
        Kill(mortal);
      }
      return testing::FaultyZk::Fault::kNone;
    });
    LeaseId kept = Lend({"small"}, 86'400);
    LeaseId ended = Lend();
    Await([&] { return is_dead || AwaitLease(ended, LeaseState::kHeld, seconds(1)); }, seconds(20));
    End(ended);
    time_.Advance(seconds(5));
    if (!is_dead) Kill(mortal);
    Running& next = StartLauncher(fmt::format("next{}", writes));
    ASSERT_TRUE(AwaitLease(kept, LeaseState::kHeld));
    ASSERT_TRUE(AwaitGone(ended));
    std::vector<NodeId> nodes = ReadLease(kept)->nodes;
    EXPECT_TRUE(AwaitInUse(nodes));
    End(kept);
    ASSERT_TRUE(AwaitClean());
    StopLauncher(next);
    StopLauncher(mortal);
  }
}

// REQ-10: launchers die at any moment while leases come and go.
TEST_F(LeaseKeeperTest, NothingIsLostInManyLivesOfTheKeeper) {
  SeededRandom dice(7);
  int started = 0;
  std::vector<Running*> running;
  auto start = [&] { running.push_back(&StartLauncher(fmt::format("np{}", started++))); };
  start();
  std::vector<LeaseId> open;
  for (int step = 0; step < testing::Often(200, 60); ++step) {
    std::uint64_t choice = dice.Below(10);
    if (choice < 5) {
      open.push_back(Lend({dice.Below(2) == 0 ? "small" : "large"}, 86'400));
    } else if (choice < 8 && !open.empty()) {
      auto ended = open.begin() + static_cast<std::ptrdiff_t>(dice.Below(open.size()));
      End(*ended);
      open.erase(ended);
    } else if (running.size() < 2) {
      start();
    } else {
      Kill(*running.front());
      StopLauncher(*running.front());
      running.erase(running.begin());
    }
    time_.Advance(std::chrono::milliseconds(dice.Below(2000)));
  }
  std::set<NodeId> nodes;
  for (const LeaseId& id : open) {
    ASSERT_TRUE(AwaitLease(id, LeaseState::kHeld)) << id.value;
    NodeId node = ReadLease(id)->nodes.at(0);
    EXPECT_TRUE(nodes.insert(node).second) << "given twice";
    EXPECT_EQ(OwnerOf(node), "lease:" + id.value);
  }
  EXPECT_TRUE(AwaitInUse({nodes.begin(), nodes.end()}));
  for (const LeaseId& id : open) End(id);
  EXPECT_TRUE(AwaitClean());
}

TEST(LeaseDeadlinesTest, TheEarliestIsFirst) {
  LeaseDeadlines deadlines;
  EXPECT_EQ(deadlines.First(), SteadyTime::max());
  SteadyTime start{};
  LeaseId a("a"), b("b"), c("c");
  deadlines.Set(a, start + seconds(3));
  deadlines.Set(b, start + seconds(2));
  deadlines.Set(c, start + seconds(1));
  deadlines.Set(c, start + seconds(4));
  EXPECT_EQ(deadlines.First(), start + seconds(2));
  EXPECT_THAT(deadlines.TakeDue(start + seconds(3)), ElementsAre(b, a));
  deadlines.Erase(c);
  deadlines.Erase(c);
  EXPECT_EQ(deadlines.First(), SteadyTime::max());
}

}  // namespace

}  // namespace nodepool::launcher
