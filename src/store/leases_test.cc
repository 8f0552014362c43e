#include "store/leases.h"

#include <gmock/gmock.h>

#include "model/node_request.h"
#include "store/cache/caches.h"
#include "store/store_for_test.h"

namespace nodepool::store {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const LeaseId kId(std::string(32, 'a'));
constexpr std::string_view kOther = "another";

class LeasesTest : public ::testing::Test {
 protected:
  static Lease Waiting(std::vector<std::string> labels = {"small", "small"}) {
    Lease lease;
    lease.client = "ci";
    for (std::string& label : labels) lease.labels.emplace_back(std::move(label));
    lease.created_time = FromSeconds(1'700'000'000);
    return lease;
  }
  bool Create(Lease lease = Waiting()) {
    NodeRequest request = RequestFor(kId, lease, world_.time.clock().Now());
    return world_.Run(leases().Create(kId, std::move(lease), std::move(request), "200"));
  }
  Leases& leases() { return world_.store.leases; }
  Lease Read() {
    std::optional<StoredLease> lease = world_.Run(leases().Read(kId));
    return lease ? lease->record : Lease();
  }
  bool HasLease() { return world_.Exists("/nodepool/leases/" + kId.value); }
  // What a launcher does: the request's nodes are ready. Every second one was locked before.
  std::vector<NodeId> Fulfil() {
    RequestId request = Read().request;
    std::vector<NodeId> nodes;
    for (std::size_t i = 0; i < Read().labels.size(); ++i) {
      Node node = InitNode();
      node.state = NodeState::kReady;
      node.allocated_to = request;
      nodes.push_back(world_.Run(world_.store.nodes.Create(node)));
      if (i % 2 == 1) world_.Put("/nodepool/nodes/" + nodes.back().value + "/lock", "");
    }
    StoredRequest seen = *world_.Run(world_.store.requests.Read(request));
    seen.record.state = RequestState::kFulfilled;
    seen.record.nodes = nodes;
    world_.Put("/nodepool/requests/" + request.value, ToJson(seen.record));
    return nodes;
  }
  std::vector<NodeId> Held() {
    Create();
    std::vector<NodeId> nodes = Fulfil();
    EXPECT_TRUE(world_.Run(leases().Take(kId)).is_taken);
    return nodes;
  }
  void SetState(const NodeId& node, NodeState state) {
    world_.Run(world_.store.nodes.UpdateUnlocked(node, ToState(state)));
  }
  // Another process has the lock.
  void Contend(const NodeId& node) {
    std::string directory = "/nodepool/nodes/" + node.value + "/lock";
    for (const std::string& child : world_.Children(directory)) world_.Erase(directory + "/" + child);
    world_.Put(directory + "/" + std::string(32, '0') + "__lock__0000000000", std::string(kOther));
  }
  NodeState StateOf(const NodeId& node) { return *world_.Run(world_.store.nodes.Read(node))->record.state; }
  std::optional<std::string> OwnerOf(const NodeId& node) {
    return world_.Run(world_.store.nodes.Owner(node));
  }
  std::vector<std::string> Requests() { return world_.Children("/nodepool/requests"); }

  World world_;
};

// REQ-2
TEST_F(LeasesTest, LeaseAndRequestAreMadeTogether) {
  ASSERT_TRUE(Create());
  EXPECT_EQ(world_.faulty.CountWrites(), 6u) << "two paths, the transaction twice, and the note";
  Lease lease = Read();
  EXPECT_EQ(lease.state, LeaseState::kWaiting);
  EXPECT_THAT(Requests(), ElementsAre(lease.request.value));
  EXPECT_EQ(lease.request.value.substr(0, 4), "200-");
  NodeRequest request = world_.Run(world_.store.requests.Read(lease.request))->record;
  EXPECT_EQ(request.event_id, kId.value);
  EXPECT_EQ(request.node_types, lease.labels);
  EXPECT_TRUE(request.foreign.unknown.empty());
}

// REQ-6
TEST_F(LeasesTest, TheTreeMakesAnIdUnique) {
  ASSERT_TRUE(Create());
  EXPECT_FALSE(Create(Waiting({"large"})));
  EXPECT_EQ(Requests().size(), 1u);
  EXPECT_EQ(Read().labels.size(), 2u);
}

// REQ-1
TEST_F(LeasesTest, NodesAreTakenInOneTransaction) {
  Create();
  std::vector<NodeId> nodes = Fulfil();
  world_.faulty.ClearCalls();
  Leases::Taking taking = world_.Run(leases().Take(kId));
  EXPECT_TRUE(taking.is_taken);
  EXPECT_EQ(world_.faulty.CountWrites(), 1u);
  EXPECT_THAT(Requests(), IsEmpty());
  Lease lease = Read();
  EXPECT_EQ(lease.state, LeaseState::kHeld);
  EXPECT_EQ(lease.nodes, nodes);
  EXPECT_TRUE(lease.request.empty());
  for (const NodeId& node : nodes) {
    EXPECT_EQ(StateOf(node), NodeState::kInUse);
    EXPECT_EQ(OwnerOf(node), "lease:" + kId.value);
    EXPECT_EQ(LeaseOf(world_.Run(world_.store.nodes.Read(node))->record), kId);
  }
  EXPECT_FALSE(world_.Run(leases().Take(kId)).is_taken) << "there is nothing left to take";
}

TEST_F(LeasesTest, OnlyAFulfilledRequestIsTaken) {
  Create();
  Leases::Taking taking = world_.Run(leases().Take(kId));
  EXPECT_FALSE(taking.is_taken);
  EXPECT_EQ(taking.obstacle, "");
  EXPECT_FALSE(world_.Run(leases().Take(LeaseId(std::string(32, 'b')))).is_taken);
}

// REQ-12
TEST_F(LeasesTest, ANodeOfAnotherOwnerIsAnObstacle) {
  Create();
  std::vector<NodeId> nodes = Fulfil();
  Contend(nodes[1]);
  Leases::Taking taking = world_.Run(leases().Take(kId));
  EXPECT_FALSE(taking.is_taken);
  EXPECT_TRUE(taking.may_pass);
  EXPECT_THAT(taking.obstacle, HasSubstr("locked by another process"));
  EXPECT_EQ(StateOf(nodes[0]), NodeState::kReady);
  EXPECT_TRUE(world_.Run(leases().Fail(kId, taking.obstacle)));
  EXPECT_EQ(Read().state, LeaseState::kFailed);
  EXPECT_THAT(Requests(), IsEmpty());
  EXPECT_EQ(OwnerOf(nodes[1]), kOther);
}

TEST_F(LeasesTest, ANodeThatIsGoneIsAnObstacle) {
  Create();
  std::vector<NodeId> nodes = Fulfil();
  world_.Erase("/nodepool/nodes/" + nodes[0].value);
  Leases::Taking taking = world_.Run(leases().Take(kId));
  EXPECT_FALSE(taking.may_pass);
  EXPECT_THAT(taking.obstacle, HasSubstr("taken away"));
}

// REQ-5
TEST_F(LeasesTest, ALeaseFailsWithItsRequest) {
  Create();
  EXPECT_FALSE(world_.Run(leases().FailUnserved(kId))) << "it may still be served";
  RequestId request = Read().request;
  NodeRequest record = world_.Run(world_.store.requests.Read(request))->record;
  record.state = RequestState::kFailed;
  AddDeclineReason(record, "cloud main: it has no label small");
  world_.Put("/nodepool/requests/" + request.value, ToJson(record));
  EXPECT_TRUE(world_.Run(leases().FailUnserved(kId)));
  EXPECT_EQ(Read().failure, "cloud main: it has no label small");
  EXPECT_THAT(Requests(), IsEmpty());
  EXPECT_FALSE(world_.Run(leases().FailUnserved(kId)));
}

// REQ-5
TEST_F(LeasesTest, ALeaseFailsWhenItsRequestIsGone) {
  Create();
  world_.Erase("/nodepool/requests/" + Read().request.value);
  EXPECT_TRUE(world_.Run(leases().FailUnserved(kId)));
  EXPECT_EQ(Read().failure, "its request was deleted before it was served");
}

// REQ-4
TEST_F(LeasesTest, TheEndGivesEverythingBackInOneTransaction) {
  std::vector<NodeId> nodes = Held();
  world_.faulty.ClearCalls();
  EXPECT_TRUE(world_.Run(leases().End(kId)));
  EXPECT_EQ(world_.faulty.CountWrites(), 1u);
  EXPECT_FALSE(HasLease());
  for (const NodeId& node : nodes) {
    EXPECT_EQ(StateOf(node), NodeState::kUsed);
    EXPECT_EQ(OwnerOf(node), std::nullopt);
  }
  EXPECT_FALSE(world_.Run(leases().End(kId)));
}

// REQ-3, REQ-4
TEST_F(LeasesTest, TheEndOfAWaitingLeaseDeletesItsRequestUnlessItWasRenewed) {
  Create();
  std::int32_t version = world_.Run(leases().Read(kId))->revision.version;
  auto renew = [](Lease& lease) {
    lease.renewed_time = FromSeconds(1'700'000'001);
    return Change::kWrite;
  };
  EXPECT_TRUE(world_.Run(leases().Update(kId, renew)));
  EXPECT_FALSE(world_.Run(leases().End(kId, version)));
  EXPECT_TRUE(world_.Run(leases().End(kId, version + 1)));
  EXPECT_THAT(Requests(), IsEmpty());
}

// REQ-8
TEST_F(LeasesTest, NodesThatAnOperatorTookAreDropped) {
  Create(Waiting({"small", "small", "small", "small"}));
  std::vector<NodeId> nodes = Fulfil();
  world_.Run(leases().Take(kId));
  EXPECT_THAT(world_.Run(leases().DropLostNodes(kId)), IsEmpty());
  SetState(nodes[0], NodeState::kHold);
  world_.Erase("/nodepool/nodes/" + nodes[1].value);
  Contend(nodes[2]);
  EXPECT_THAT(world_.Run(leases().DropLostNodes(kId)), ElementsAre(nodes[0], nodes[1], nodes[2]));
  EXPECT_THAT(Read().nodes, ElementsAre(nodes[3]));
  EXPECT_EQ(StateOf(nodes[0]), NodeState::kHold);
  EXPECT_EQ(OwnerOf(nodes[0]), std::nullopt);
  EXPECT_EQ(StateOf(nodes[2]), NodeState::kInUse) << "its first contender decides";
  EXPECT_EQ(world_.Children("/nodepool/nodes/" + nodes[2].value + "/lock").size(), 1u);
}

// REQ-7
TEST_F(LeasesTest, ANodeIsHeldForAPerson) {
  std::vector<NodeId> nodes = Held();
  EXPECT_TRUE(world_.Run(leases().HoldNode(kId, nodes[0], "bug 7", 600)));
  EXPECT_TRUE(world_.Run(leases().HoldNode(kId, nodes[0], "bug 7", 600))) << "it is done";
  EXPECT_FALSE(world_.Run(leases().HoldNode(kId, NodeId("0000000099"), "bug 7", {})));
  Node node = world_.Run(world_.store.nodes.Read(nodes[0]))->record;
  EXPECT_EQ(node.state, NodeState::kHold);
  EXPECT_EQ(node.comment, "bug 7");
  EXPECT_EQ(node.hold_expiration, 600);
  EXPECT_EQ(OwnerOf(nodes[0]), std::nullopt);
  EXPECT_THAT(Read().nodes, ElementsAre(nodes[1]));
}

// REQ-11
TEST_F(LeasesTest, OrphansAreFreed) {
  std::vector<NodeId> nodes = Held();
  EXPECT_FALSE(world_.Run(leases().FreeOrphan(nodes[0], kId))) << "its lease has it";
  world_.Put("/nodepool/leases/" + kId.value, "{");
  EXPECT_FALSE(world_.Run(leases().FreeOrphan(nodes[0], kId))) << "an operator has to decide";
  world_.Erase("/nodepool/leases/" + kId.value);
  EXPECT_TRUE(world_.Run(leases().FreeOrphan(nodes[0], kId)));
  EXPECT_EQ(StateOf(nodes[0]), NodeState::kUsed);
  EXPECT_EQ(OwnerOf(nodes[0]), std::nullopt);
  EXPECT_FALSE(world_.Run(leases().FreeOrphan(nodes[0], kId)));
}

TEST_F(LeasesTest, RequestsWithoutTheirLeaseAreDeleted) {
  Create();
  RequestId request = Read().request;
  EXPECT_FALSE(world_.Run(leases().DeleteOrphan(request, kId)));
  world_.Erase("/nodepool/leases/" + kId.value);
  EXPECT_TRUE(world_.Run(leases().DeleteOrphan(request, kId)));
  EXPECT_THAT(Requests(), IsEmpty());
}

// Each operation fails once in turn, before or after its effect: the result is the same.
class LostAnswersTest : public LeasesTest,
                        public ::testing::WithParamInterface<std::tuple<int, testing::FaultyZk::Fault>> {
 protected:
  void FailOnce() {
    auto [n, fault] = GetParam();
    world_.faulty.FailNth(static_cast<std::size_t>(n), fault);
  }
};

// REQ-9
TEST_P(LostAnswersTest, CreationIsDoneOnce) {
  world_.Put("/nodepool/leases", "");
  world_.Put("/nodepool/requests", "");
  FailOnce();
  EXPECT_TRUE(Create());
  world_.faulty.FailNever();
  EXPECT_EQ(Requests().size(), 1u);
  EXPECT_EQ(Read().state, LeaseState::kWaiting);
}

// REQ-9
TEST_P(LostAnswersTest, TakingAndEndingAreDoneOnce) {
  Create();
  std::vector<NodeId> nodes = Fulfil();
  FailOnce();
  world_.Run(leases().Take(kId));
  EXPECT_EQ(Read().state, LeaseState::kHeld);
  for (const NodeId& node : nodes) EXPECT_EQ(world_.Run(world_.store.nodes.Contenders(node)).size(), 1u);
  FailOnce();
  EXPECT_TRUE(world_.Run(leases().HoldNode(kId, nodes[0], "bug 7", {})));
  FailOnce();
  world_.Run(leases().End(kId));
  world_.faulty.FailNever();
  EXPECT_FALSE(HasLease());
  EXPECT_EQ(StateOf(nodes[0]), NodeState::kHold);
  EXPECT_EQ(StateOf(nodes[1]), NodeState::kUsed);
}

INSTANTIATE_TEST_SUITE_P(EachOperation, LostAnswersTest,
                         ::testing::Combine(::testing::Range(0, 12),
                                            ::testing::Values(testing::FaultyZk::Fault::kBefore,
                                                              testing::FaultyZk::Fault::kAfter)));

class LeaseCacheTest : public LeasesTest {
 protected:
  void SetUp() override {
    cache_.Start();
    world_.Run(cache_.WaitSynced());
  }
  void TearDown() override { world_.Run(cache_.Stop()); }

  LeaseCache cache_{world_.time.loop(), world_.faulty};
  log::Capture log_;
};

TEST_F(LeaseCacheTest, LeasesAreFoundByClientRequestAndNode) {
  Create();
  world_.Run(cache_.CatchUp());
  EXPECT_THAT(cache_.OfClient("ci"), ElementsAre(kId));
  EXPECT_EQ(cache_.NodeCountOf("ci"), 2u);
  ASSERT_NE(cache_.WaitingFor(Read().request), nullptr);
  EXPECT_EQ(cache_.WaitingFor(Read().request)->id, kId);
  std::vector<NodeId> nodes = Fulfil();
  world_.Run(leases().Take(kId));
  world_.Run(leases().HoldNode(kId, nodes[0], "", {}));
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.NodeCountOf("ci"), 1u);
  EXPECT_EQ(cache_.Holding(nodes[0]), nullptr);
  EXPECT_EQ(cache_.Holding(nodes[1])->id, kId);
  world_.Run(leases().End(kId));
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.NodeCountOf("ci"), 0u);
  EXPECT_THAT(cache_.OfClient("ci"), IsEmpty());
  EXPECT_EQ(cache_.Holding(nodes[1]), nullptr);
  EXPECT_EQ(cache_.Find(kId), nullptr);
}

// D-08
TEST_F(LeaseCacheTest, MalformedOnesAreReportedOnceAndSkipped) {
  world_.Put("/nodepool/leases/" + kId.value, "{");
  world_.Put("/nodepool/leases/no-id", "{");
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.malformed_count(), 1u);
  EXPECT_THAT(cache_.all(), IsEmpty());
  EXPECT_EQ(log_.Count("/nodepool/leases/" + kId.value), 1);
}

}  // namespace

}  // namespace nodepool::store
