#include <gmock/gmock.h>

#include "async/task_group.h"
#include "store/store_for_test.h"
#include "store/transaction.h"
#include "store/whole_tree.h"

namespace nodepool::store {

// Every operation of the store with the connection lost before or after the effect
// of each single client call: the result and the tree must be those of the
// undisturbed run.

namespace {

using Fault = testing::FaultyZk::Fault;

StoredRequest SeenRequest(World& w) {
  RequestId id = w.Run(w.store.requests.Create("200", Requested("small"), false));
  return *w.Run(w.store.requests.Read(id));
}

LockedRequest AcceptedRequest(World& w) {
  return std::move(*w.Run(w.store.requests.Accept(SeenRequest(w), ToState(RequestState::kPending))));
}

LockedNode BuildingNode(World& w) {
  return w.Run(w.store.nodes.CreateLocked(InitNode(), ToState(NodeState::kBuilding)));
}

Task<> CreateInto(Store& store, Node node, std::vector<LockedNode>& made) {
  LockedNode created = co_await store.nodes.CreateLocked(std::move(node), ToState(NodeState::kBuilding));
  made.push_back(std::move(created));
}

class StoreFaultTest : public ::testing::TestWithParam<Fault> {
 protected:
  // `prepare` creates the object that `act` works on; `act` returns a word about its result.
  template <class Prepare, class Act>
  void Check(Prepare prepare, Act act) {
    std::string expected;
    std::size_t calls = 0;
    {
      World w;
      auto subject = prepare(w);
      w.faulty.ClearCalls();
      expected = act(w, subject);
      calls = w.faulty.calls().size();
      expected += "\n" + w.Picture();
    }
    for (std::size_t n = 0; n < calls; ++n) {
      World w;
      auto subject = prepare(w);
      w.faulty.FailNth(n, GetParam());
      std::string result = act(w, subject);
      EXPECT_EQ(result + "\n" + w.Picture(), expected) << "call " << n << " of " << calls;
    }
    EXPECT_GT(calls, 0u);
  }
  static int Nothing(World&) { return 0; }
  static std::string Word(bool is_true) { return is_true ? "true" : "false"; }
};

struct Delivered {
  NodeId node;
  RequestId request;
};

Delivered DeliveredNode(World& w) {
  Delivered delivered;
  delivered.node = w.Run(w.store.nodes.Create(InitNode()));
  delivered.request = w.Run(w.store.requests.Create("100", Requested("small"), true));
  return delivered;
}

NodeId ClaimedNode(World& w) {
  Delivered delivered = DeliveredNode(w);
  EXPECT_TRUE(
      w.Run(w.store.nodes.Claim(delivered.node, "me", ToState(NodeState::kInUse), delivered.request)));
  return delivered.node;
}

TEST_P(StoreFaultTest, ClaimNode) {
  Check(DeliveredNode, [](World& w, Delivered& delivered) {
    return Word(
        w.Run(w.store.nodes.Claim(delivered.node, "me", ToState(NodeState::kInUse), delivered.request)));
  });
}

TEST_P(StoreFaultTest, ReleaseNode) {
  Check(ClaimedNode, [](World& w, NodeId& node) {
    return Word(w.Run(w.store.nodes.Release(node, "me", ToState(NodeState::kUsed))));
  });
}

TEST_P(StoreFaultTest, CreateRequest) {
  Check(Nothing,
        [](World& w, int) { return w.Run(w.store.requests.Create("200", Requested("a"), true)).str(); });
}

TEST_P(StoreFaultTest, AcceptRequest) {
  Check(SeenRequest, [](World& w, StoredRequest& seen) {
    std::optional<LockedRequest> locked =
        w.Run(w.store.requests.Accept(seen, ToState(RequestState::kPending)));
    return Word(locked && locked->is_held());
  });
}

TEST_P(StoreFaultTest, AcceptRequestWithLockDirectory) {
  auto prepare = [](World& w) {
    w.Put("/nodepool/requests-lock/200-0000000000", "");
    return SeenRequest(w);
  };
  Check(prepare, [](World& w, StoredRequest& seen) {
    return Word(w.Run(w.store.requests.Accept(seen, ToState(RequestState::kPending))).has_value());
  });
}

TEST_P(StoreFaultTest, UpdateRequest) {
  Check(AcceptedRequest, [](World& w, LockedRequest& request) {
    return Word(w.Run(request.Update(ToState(RequestState::kFailed))));
  });
}

TEST_P(StoreFaultTest, UpdateAndUnlockRequest) {
  Check(AcceptedRequest, [](World& w, LockedRequest& request) {
    return Word(w.Run(request.UpdateAndUnlock(ToState(RequestState::kRequested))));
  });
}

TEST_P(StoreFaultTest, Fulfil) {
  struct Parts {
    LockedRequest request;
    LockedNode node;
  };
  auto prepare = [](World& w) { return Parts{AcceptedRequest(w), BuildingNode(w)}; };
  Check(prepare, [](World& w, Parts& parts) {
    std::vector<LockedNode*> nodes{&parts.node};
    return Word(w.Run(parts.request.Fulfil(nodes, ToState(RequestState::kFulfilled))));
  });
}

TEST_P(StoreFaultTest, CreateLockedNode) {
  Check(Nothing, [](World& w, int) { return BuildingNode(w).id().str(); });
}

TEST_P(StoreFaultTest, CreateNode) {
  Check(Nothing, [](World& w, int) { return w.Run(w.store.nodes.Create(InitNode())).str(); });
}

TEST_P(StoreFaultTest, UpdateNode) {
  Check(BuildingNode,
        [](World& w, LockedNode& node) { return Word(w.Run(node.Update(ToState(NodeState::kReady)))); });
}

TEST_P(StoreFaultTest, UnlockNode) {
  Check(BuildingNode, [](World& w, LockedNode& node) {
    w.Run(node.Unlock());
    return "";
  });
}

TEST_P(StoreFaultTest, RemoveNode) {
  Check(BuildingNode, [](World& w, LockedNode& node) {
    w.Run(node.Remove());
    return "";
  });
}

TEST_P(StoreFaultTest, RemoveContendedNode) {
  auto prepare = [](World& w) {
    LockedNode node = BuildingNode(w);
    w.Put("/nodepool/nodes/0000000000/lock/33333333333333333333333333333333__lock__0000000007", "");
    return node;
  };
  Check(prepare, [](World& w, LockedNode& node) {
    w.Run(node.Remove());
    return "";
  });
}

TEST_P(StoreFaultTest, TryLockNode) {
  auto prepare = [](World& w) { return w.Run(w.store.nodes.Create(InitNode())); };
  Check(prepare, [](World& w, NodeId& id) { return Word(w.Run(w.store.nodes.TryLock(id)).has_value()); });
}

TEST_P(StoreFaultTest, UpdateUnlockedNode) {
  auto prepare = [](World& w) { return w.Run(w.store.nodes.Create(InitNode())); };
  Check(prepare, [](World& w, NodeId& id) {
    return Word(w.Run(w.store.nodes.UpdateUnlocked(id, ToState(NodeState::kReady))));
  });
}

TEST_P(StoreFaultTest, AChangeThatAppliesOnce) {
  auto prepare = [](World& w) { return w.Run(w.store.nodes.Create(InitNode())); };
  auto once = [](Node& node) {
    if (node.state != NodeState::kInit) return Change::kSkip;
    node.state = NodeState::kReady;
    return Change::kWrite;
  };
  Check(prepare,
        [once](World& w, NodeId& id) { return Word(w.Run(w.store.nodes.UpdateUnlocked(id, once))); });
}

TEST_P(StoreFaultTest, TryLockNamed) {
  Check(Nothing, [](World& w, int) { return Word(w.Run(w.store.tree.TryLockNamed("x")).has_value()); });
}

// Two concurrent tasks with equal creations each find their own node.
TEST(StoreLostAnswersTest, EqualCreationsMakeOneNodeEach) {
  World w;
  Node node = InitNode();
  node.created_time = node.state_time;
  int failures = 2;
  w.faulty.FailWhen([&](const testing::FaultyZk::Call& call) {
    bool is_creation = call.name == "Create" && w.memory.tree().Exists("/nodepool/nodes").has_value();
    return is_creation && failures-- > 0 ? Fault::kAfter : Fault::kNone;
  });
  w.Put("/nodepool/nodes", "");
  TaskGroup group(w.time.loop(), log::Logger("test"));
  std::vector<LockedNode> made;
  for (int i = 0; i < 2; ++i) group.Spawn("create", CreateInto(w.store, node, made));
  ASSERT_TRUE(w.time.RunUntil([&] { return made.size() == 2; }));
  EXPECT_NE(made[0].id(), made[1].id());
  EXPECT_EQ(w.Children("/nodepool/nodes").size(), 2u);
  w.Run(group.Stop());
}

Task<> RequestInto(Store& store, NodeRequest request, std::vector<RequestId>& made) {
  RequestId created = co_await store.requests.Create("100", std::move(request), false);
  made.push_back(std::move(created));
}

// Their records stay as they were created, and the newest is the first that is found.
TEST(StoreLostAnswersTest, EqualRequestsAreTwo) {
  World w;
  w.Put("/nodepool/requests", "");
  int failures = 2;
  w.faulty.FailWhen([&](const testing::FaultyZk::Call& call) {
    return call.name == "Create" && failures-- > 0 ? Fault::kAfter : Fault::kNone;
  });
  TaskGroup group(w.time.loop(), log::Logger("test"));
  std::vector<RequestId> made;
  for (int i = 0; i < 2; ++i) group.Spawn("create", RequestInto(w.store, Requested("small"), made));
  ASSERT_TRUE(w.time.RunUntil([&] { return made.size() == 2; }));
  EXPECT_NE(made[0], made[1]);
  EXPECT_EQ(w.Children("/nodepool/requests").size(), 2u);
  w.Run(group.Stop());
}

// A launcher declines the request before its creator looks for it.
TEST(StoreLostAnswersTest, ARequestThatWasChangedMeanwhileIsFound) {
  World w;
  w.Put("/nodepool/requests", "");
  w.faulty.FailWhen([&](const testing::FaultyZk::Call& call) {
    if (call.name == "Create") return Fault::kAfter;
    std::vector<std::string> ids = w.Children("/nodepool/requests");
    if (call.name != "Sync" || ids.size() != 1) return Fault::kNone;
    std::string path = "/nodepool/requests/" + ids[0];
    NodeRequest request = *ParseNodeRequest(w.Data(path), w.time.loop().Now());
    request.declined_by = {LauncherId("another")};
    w.Put(path, ToJson(request));
    return Fault::kNone;
  });
  RequestId made = w.Run(w.store.requests.Create("100", Requested("small"), true));
  EXPECT_EQ(w.Children("/nodepool/requests"), std::vector{made.value});
}

// The server that is read may be behind the one that carried the creation out.
TEST(StoreLostAnswersTest, ACreatedZnodeIsSearchedInTheNewestState) {
  World w;
  w.Put("/nodepool/nodes", "");
  w.faulty.FailNth(0, Fault::kAfter);
  w.Run(w.store.nodes.Create(InitNode()));
  ASSERT_GE(w.faulty.calls().size(), 3u);
  EXPECT_EQ(w.faulty.calls()[0].name, "Create");
  EXPECT_EQ(w.faulty.calls()[1].name, "Sync");
  EXPECT_EQ(w.faulty.calls()[1].path, "/nodepool/nodes");
  EXPECT_EQ(w.faulty.calls()[2].name, "GetChildren");
}

INSTANTIATE_TEST_SUITE_P(Faults, StoreFaultTest, ::testing::Values(Fault::kBefore, Fault::kAfter),
                         [](const auto& info) { return info.param == Fault::kBefore ? "Before" : "After"; });

TEST(NodeOwnershipTest, AClaimedNodeIsItsOwnersUntilItIsReleased) {
  World w;
  NodeId node = w.Run(w.store.nodes.Create(InitNode()));
  RequestId request = w.Run(w.store.requests.Create("100", Requested("small"), true));
  EXPECT_EQ(w.Run(w.store.nodes.Owner(node)), std::nullopt);
  EXPECT_TRUE(w.Run(w.store.nodes.Claim(node, "me", ToState(NodeState::kInUse), request)));
  EXPECT_EQ(w.Run(w.store.nodes.Owner(node)), "me");
  EXPECT_EQ(w.Run(w.store.nodes.Read(node))->record.state, NodeState::kInUse);
  EXPECT_EQ(w.Run(w.store.requests.Read(request)), std::nullopt);
  EXPECT_FALSE(w.Run(w.store.nodes.TryLock(node)));
  EXPECT_FALSE(w.Run(w.store.nodes.Release(node, "you", ToState(NodeState::kUsed))));
  EXPECT_TRUE(w.Run(w.store.nodes.Release(node, "me", ToState(NodeState::kUsed))));
  EXPECT_EQ(w.Run(w.store.nodes.Read(node))->record.state, NodeState::kUsed);
  EXPECT_TRUE(w.Run(w.store.nodes.TryLock(node)));
}

TEST(NodeOwnershipTest, ANodeThatIsNotToBeChangedIsNotReleased) {
  World w;
  NodeId node = w.Run(w.store.nodes.Create(InitNode()));
  RequestId request = w.Run(w.store.requests.Create("100", Requested("small"), true));
  EXPECT_TRUE(w.Run(w.store.nodes.Claim(node, "me", ToState(NodeState::kInUse), request)));
  EXPECT_FALSE(w.Run(w.store.nodes.Release(node, "me", [](Node&) { return Change::kSkip; })));
  EXPECT_EQ(w.Run(w.store.nodes.Owner(node)), "me");
}

TEST(NodeOwnershipTest, ANodeThatIsLockedOrWhoseRequestIsGoneCannotBeClaimed) {
  World w;
  NodeId node = w.Run(w.store.nodes.Create(InitNode()));
  RequestId request = w.Run(w.store.requests.Create("100", Requested("small"), true));
  auto locked = w.Run(w.store.nodes.TryLock(node));
  EXPECT_FALSE(w.Run(w.store.nodes.Claim(node, "me", ToState(NodeState::kInUse), request)));
  w.Run(locked->Unlock());
  w.Run(w.store.requests.Delete(request));
  EXPECT_FALSE(w.Run(w.store.nodes.Claim(node, "me", ToState(NodeState::kInUse), request)));
  EXPECT_EQ(w.Run(w.store.nodes.Owner(node)), std::nullopt);
  EXPECT_FALSE(w.Run(w.store.nodes.Claim(NodeId("0000009999"), "me", ToState(NodeState::kInUse), request)));
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MinReadyRequestsTest : public ::testing::Test {
 protected:
  std::optional<std::vector<RequestId>> Create(int count, std::int32_t seen_version) {
    NodeRequest request;
    request.SetState(RequestState::kRequested, WallTime());
    request.node_types = {LabelName("small")};
    std::vector<NodeRequest> copies(static_cast<std::size_t>(count), request);
    auto creation = requests_.Create(std::move(copies), seen_version);
    return world_.Run(std::move(creation));
  }

  World world_;
  MinReadyRequests requests_{world_.store.tree};
};

// As on an empty tree: the version is known before there is any request.
TEST_F(MinReadyRequestsTest, AreMadeTogether) {
  std::int32_t version = world_.Run(requests_.Version());
  bool is_made = Create(2, version).has_value();
  ASSERT_TRUE(is_made || Create(2, version));
  EXPECT_THAT(world_.Children("/nodepool/requests"), ElementsAre("900-0000000000", "900-0000000001"));
  auto stored = world_.Run(world_.store.requests.Read(RequestId("900-0000000001")));
  ASSERT_TRUE(stored);
  EXPECT_TRUE(stored->revision.is_ephemeral());
  EXPECT_THAT(stored->record.node_types, ElementsAre(LabelName("small")));
}

TEST_F(MinReadyRequestsTest, OfTwoDecisionsOnTheSameRecordsOneIsCarriedOut) {
  world_.Put("/nodepool/requests", "");
  std::int32_t version = world_.Run(requests_.Version());
  EXPECT_EQ(world_.Run(requests_.Version()), version);
  EXPECT_THAT(*Create(1, version), ElementsAre(RequestId("900-0000000000")));
  EXPECT_FALSE(Create(1, version));
  EXPECT_THAT(*Create(1, world_.Run(requests_.Version())), ElementsAre(RequestId("900-0000000001")));
}

TEST_F(MinReadyRequestsTest, ALostAnswerMakesNoSecondRequest) {
  world_.Put("/nodepool/requests", "");
  std::int32_t version = world_.Run(requests_.Version());
  world_.faulty.FailNth(0, testing::FaultyZk::Fault::kAfter);
  EXPECT_FALSE(Create(1, version));
  EXPECT_EQ(world_.Children("/nodepool/requests").size(), 1u);
}

using nodepool::testing::FaultyZk;

class NodeDeletionTest : public ::testing::Test {
 protected:
  LockedNode NewNode() {
    return w.Run(w.store.nodes.CreateLocked(InitNode(), ToState(NodeState::kBuilding)));
  }
  std::string NodePath(const LockedNode& node) { return "/nodepool/nodes/" + node.id().str(); }

  World w;
};

// coordination.11.9
TEST_F(NodeDeletionTest, RemovingANodeIsOneWrite) {
  LockedNode node = NewNode();
  w.faulty.ClearCalls();
  w.Run(node.Remove());
  EXPECT_EQ(w.faulty.CountWrites(), 1u);
  EXPECT_FALSE(w.Exists(NodePath(node)));
  w.Run(node.Remove());
}

// coordination.11.9 and D-05: no waiting contender becomes the holder of a node that is being
// deleted.
TEST_F(NodeDeletionTest, RemovingANodeDeletesWaitingContendersBeforeItsHolder) {
  LockedNode node = NewNode();
  std::string lock = NodePath(node) + "/lock";
  std::string own = lock + "/" + w.Children(lock).at(0);
  for (std::string waiting : {"/00000000000000000000000000000000__lock__0000000007",
                              "/ffffffffffffffffffffffffffffffff__lock__0000000008"})
    w.Put(lock + waiting, "");
  std::vector<std::string> gone;
  w.memory.OnWrite([&](std::int64_t, const zk::WatchEvent& change) {
    if (change.type != zk::EventType::kDeleted) return;
    gone.push_back(change.path);
    EXPECT_FALSE(w.Exists(NodePath(node))) << change.path << " went alone";
  });
  w.Run(node.Remove());
  w.memory.OnWrite(nullptr);
  EXPECT_THAT(gone, ElementsAre(lock + "/ffffffffffffffffffffffffffffffff__lock__0000000008",
                                lock + "/00000000000000000000000000000000__lock__0000000007", own, lock,
                                NodePath(node)));
}

TEST_F(NodeDeletionTest, AContenderThatComesDuringTheRemovalIsDeletedToo) {
  LockedNode node = NewNode();
  int arrivals = 0;
  w.faulty.FailWhen([&](const FaultyZk::Call& call) {
    if (call.name != "Multi" || arrivals == 3) return FaultyZk::Fault::kNone;
    std::string number = std::to_string(1000000000 + arrivals++);
    w.Put(NodePath(node) + "/lock/33333333333333333333333333333333__lock__" + number, "");
    return FaultyZk::Fault::kNone;
  });
  w.Run(node.Remove());
  EXPECT_EQ(arrivals, 3);
  EXPECT_FALSE(w.Exists(NodePath(node)));
}

// Our lock was removed by force and another process holds the node now.
TEST_F(NodeDeletionTest, ANodeThatAnotherHoldsIsNotRemoved) {
  LockedNode node = NewNode();
  std::string lock = NodePath(node) + "/lock";
  w.Erase(lock + "/" + w.Children(lock).at(0));
  w.Put(lock + "/33333333333333333333333333333333__lock__0000000007", "");
  std::string before = w.Picture();
  EXPECT_EQ(VerdictThrown([&] { w.Run(node.Remove()); }), Verdict::kLostSession);
  EXPECT_EQ(w.Picture(), before);
}

// operations.16.8
TEST_F(NodeDeletionTest, AnErasedNodeIsDeletedInOneTransaction) {
  LockedNode node = NewNode();
  std::string lock = NodePath(node) + "/lock";
  w.Put(lock + "/00000000000000000000000000000000__lock__0000000007", "");
  w.memory.OnWrite([&](std::int64_t, const zk::WatchEvent& change) {
    EXPECT_FALSE(w.Exists(NodePath(node))) << change.path << " was changed alone";
  });
  w.Run(EraseNode(w.store, node.id(), w.time.loop().Now()));
  w.memory.OnWrite(nullptr);
  EXPECT_FALSE(w.Exists(NodePath(node)));
}

TEST_F(NodeDeletionTest, RemovingANodeThatOthersWroteSucceeds) {
  LockedNode node = NewNode();
  w.Put(NodePath(node), "garbage");
  w.Run(node.Remove());
  EXPECT_FALSE(w.Exists(NodePath(node)));
}

// coordination.17.21
TEST_F(NodeDeletionTest, OnlyAnEmptyNodeIsRemovedAsEmpty) {
  w.Put("/nodepool/nodes/0000000001/lock/44444444444444444444444444444444__lock__0000000000", "");
  w.Put("/nodepool/nodes/0000000002", "{}");
  w.Run(w.store.nodes.RemoveEmpty(NodeId("0000000001")));
  w.Run(w.store.nodes.RemoveEmpty(NodeId("0000000002")));
  w.Run(w.store.nodes.RemoveEmpty(NodeId("0000000003")));
  EXPECT_EQ(w.Children("/nodepool/nodes"), std::vector<std::string>{"0000000002"});
}

}  // namespace

}  // namespace nodepool::store
