#include "async/task_group.h"
#include "store/store_for_test.h"

// Every operation of the store with the connection lost before or after the effect
// of each single client call: the result and the tree must be those of the
// undisturbed run.

namespace nodepool::store {
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
  // `prepare` makes the object that `act` works on; `act` returns a word about its result.
  template <class Prepare, class Act>
  void Check(Prepare prepare, Act act) {
    std::string expected;
    std::size_t calls = 0;
    {
      World w;
      auto subject = prepare(w);
      w.faulty.ForgetCalls();
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

TEST_P(StoreFaultTest, AChangeThatIsWantedOnce) {
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

// Two tasks that want the same at the same moment each find their own.
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

// The server that is asked may be behind the one that carried the creation out.
TEST(StoreLostAnswersTest, WhatWasCreatedIsLookedForInTheNewestState) {
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

}  // namespace
}  // namespace nodepool::store
