#include "store/store.h"

#include "async/task_group.h"
#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kFirstRequest = "200-0000000000";

class StoreTest : public ::testing::Test {
 protected:
  StoredRequest NewRequest() {
    RequestId id = w.Run(w.store.requests.Create("200", Requested("small"), false));
    return *w.Run(w.store.requests.Read(id));
  }
  LockedRequest Accepted() {
    return std::move(*w.Run(w.store.requests.Accept(NewRequest(), ToState(RequestState::kPending))));
  }
  LockedNode NewNode() {
    return w.Run(w.store.nodes.CreateLocked(InitNode(), ToState(NodeState::kBuilding)));
  }
  // The writes that `call` costs.
  template <class Call>
  std::size_t Writes(Call call) {
    w.faulty.ClearCalls();
    call();
    return w.faulty.CountWrites();
  }
  std::string NodePath(const LockedNode& node) { return "/nodepool/nodes/" + node.id().str(); }

  World w;
};

// coordination.11.1
TEST_F(StoreTest, ARequestIsOneSequentialZnode) {
  RequestId id = w.Run(w.store.requests.Create("200", Requested("small"), false));
  EXPECT_EQ(id.str(), kFirstRequest);
  EXPECT_EQ(Writes([&] { w.Run(w.store.requests.Create("900", Requested("small"), true)); }), 1u);
  EXPECT_EQ(w.Children("/nodepool/requests"), (std::vector<std::string>{"200-0000000000", "900-0000000001"}));
  EXPECT_NE(w.memory.tree().Exists("/nodepool/requests/900-0000000001")->ephemeral_owner, 0);
  EXPECT_EQ(w.Run(w.store.requests.List()).size(), 2u);
  w.Run(w.store.requests.Delete(id));
  w.Run(w.store.requests.Delete(id));
  EXPECT_FALSE(w.Run(w.store.requests.Read(id)));
}

TEST_F(StoreTest, AnUnsetEventIdIsFilled) {
  NodeRequest request = Requested("small");
  request.event_id.reset();
  RequestId id = w.Run(w.store.requests.Create("200", request, false));
  EXPECT_EQ(w.Run(w.store.requests.Read(id))->record.event_id->size(), 32u);
}

TEST_F(StoreTest, AcceptingANewRequestIsOneWrite) {
  StoredRequest seen = NewRequest();
  w.Put("/nodepool/requests-lock", "");
  std::optional<LockedRequest> locked;
  EXPECT_EQ(Writes([&] { locked = w.Run(w.store.requests.Accept(seen, ToState(RequestState::kPending))); }),
            1u);
  ASSERT_TRUE(locked);
  EXPECT_TRUE(locked->is_held());
  EXPECT_EQ(locked->record().state, RequestState::kPending);
  EXPECT_EQ(w.Run(w.store.requests.Read(seen.id))->record.state, RequestState::kPending);
  EXPECT_EQ(w.Children("/nodepool/requests-lock/200-0000000000").size(), 1u);
  EXPECT_EQ(Writes([&] { w.Run(locked->Unlock()); }), 1u);
  EXPECT_TRUE(w.Children("/nodepool/requests-lock/200-0000000000").empty());
}

// A lock directory that exists, with a name in it that is not a contender.
TEST_F(StoreTest, AcceptingARequestLockedBeforeKeepsItsDirectory) {
  StoredRequest seen = NewRequest();
  std::string directory = "/nodepool/requests-lock/200-0000000000";
  w.Put(directory + "/11111111111111111111111111111111__rlock__0000000000", "");
  EXPECT_TRUE(w.Run(w.store.requests.Accept(seen, ToState(RequestState::kPending))));
}

TEST_F(StoreTest, ARequestLockedByAnotherIsLeftAlone) {
  StoredRequest seen = NewRequest();
  std::string directory = "/nodepool/requests-lock/200-0000000000";
  w.Put(directory + "/22222222-2222-2222-2222-222222222222__lock__0000000000", "jenkins_1");
  std::string before = w.Picture();
  EXPECT_EQ(Writes([&] {
              EXPECT_FALSE(w.Run(w.store.requests.Accept(seen, ToState(RequestState::kPending))));
              EXPECT_FALSE(w.Run(w.store.requests.TryLock(seen.id)));
            }),
            1u);  // the refused transaction
  EXPECT_EQ(w.Picture(), before);
}

// D-07: nothing is left of an attempt on a vanished record.
TEST_F(StoreTest, AVanishedRequestLeavesNothingBehind) {
  StoredRequest seen = NewRequest();
  w.Put("/nodepool/requests-lock", "");
  w.Run(w.store.requests.Delete(seen.id));
  std::string before = w.Picture();
  EXPECT_FALSE(w.Run(w.store.requests.Accept(seen, ToState(RequestState::kPending))));
  EXPECT_FALSE(w.Run(w.store.requests.TryLock(seen.id)));
  EXPECT_EQ(w.Picture(), before);
}

// D-07: the record vanishes at any point between the first read and the last.
TEST_F(StoreTest, ARequestMayVanishAtAnyPointOfLocking) {
  for (bool has_directory : {false, true}) {
    for (std::size_t point = 0; point < 12; ++point) {
      World world;
      RequestId id = world.Run(world.store.requests.Create("200", Requested("small"), false));
      StoredRequest seen = *world.Run(world.store.requests.Read(id));
      world.Put("/nodepool/requests-lock", "");
      if (has_directory) world.Put("/nodepool/requests-lock/" + id.str(), "");
      std::size_t count = 0;
      world.faulty.FailWhen([&](const testing::FaultyZk::Call&) {
        if (count++ == point) world.Erase("/nodepool/requests/" + id.str());
        return testing::FaultyZk::Fault::kNone;
      });
      std::optional<LockedRequest> locked =
          world.Run(world.store.requests.Accept(seen, ToState(RequestState::kPending)));
      if (locked) world.Run(locked->Unlock());
      if (!locked) {
        EXPECT_TRUE(world.Children("/nodepool/requests-lock/" + id.str()).empty()) << point;
      }
    }
  }
}

// D-06
TEST_F(StoreTest, TheLockDirectoryOfARequestThatVanishesWhileItIsAcceptedIsRemoved) {
  StoredRequest seen = NewRequest();
  std::string directory = "/nodepool/requests-lock/200-0000000000";
  w.Put(directory, "");
  w.faulty.FailWhen([&](const testing::FaultyZk::Call& call) {
    if (call.name == "Multi" && !w.Children(directory).empty())
      w.Erase("/nodepool/requests/" + seen.id.str());
    return testing::FaultyZk::Fault::kNone;
  });
  EXPECT_FALSE(w.Run(w.store.requests.Accept(seen, ToState(RequestState::kPending))));
  EXPECT_FALSE(w.Exists("/nodepool/requests/" + seen.id.str()));
  EXPECT_FALSE(w.Exists(directory));
}

// coordination.12.4, D-05: Zuul revised the request after we saw it.
TEST_F(StoreTest, AcceptingDecidesAgainOnTheNewestVersion) {
  StoredRequest seen = NewRequest();
  NodeRequest revised = seen.record;
  revised.relative_priority = 7;
  revised.foreign.Add("x", 1);
  w.Put("/nodepool/requests/200-0000000000", ToJson(revised));
  std::optional<LockedRequest> locked = w.Run(w.store.requests.Accept(seen, ToState(RequestState::kPending)));
  ASSERT_TRUE(locked);
  EXPECT_EQ(locked->record().relative_priority, 7);
  EXPECT_EQ(w.Run(w.store.requests.Read(seen.id))->record.foreign, revised.foreign);  // D-04
}

TEST_F(StoreTest, AcceptingMaySkipTheNewestVersion) {
  StoredRequest seen = NewRequest();
  NodeRequest taken = seen.record;
  taken.state = RequestState::kPending;
  w.Put("/nodepool/requests/200-0000000000", ToJson(taken));
  std::string before = w.Picture();
  auto only_requested = [](NodeRequest& request) {
    if (request.state != RequestState::kRequested) return Change::kSkip;
    request.state = RequestState::kPending;
    return Change::kWrite;
  };
  EXPECT_FALSE(w.Run(w.store.requests.Accept(seen, only_requested)));
  w.Put("/nodepool/requests-lock/200-0000000000", "");
  EXPECT_FALSE(w.Run(w.store.requests.Accept(seen, only_requested)));
  EXPECT_TRUE(w.Children("/nodepool/requests-lock/200-0000000000").empty());
}

TEST_F(StoreTest, OfTwoStoresOneGetsTheRequest) {
  std::unique_ptr<zk::Client> other_client = w.memory.Connect();
  Store other(w.time.loop(), *other_client, w.random);
  StoredRequest seen = NewRequest();
  auto only_requested = [](NodeRequest& request) {
    if (request.state != RequestState::kRequested) return Change::kSkip;
    request.state = RequestState::kPending;
    return Change::kWrite;
  };
  std::vector<std::optional<LockedRequest>> results(2);
  TaskGroup group(w.time.loop(), log::Logger("test"));
  struct Contest {
    static Task<> Enter(Store& store, StoredRequest seen, std::function<Change(NodeRequest&)> change,
                        std::optional<LockedRequest>& result) {
      result = co_await store.requests.Accept(std::move(seen), std::move(change));
    }
  };
  group.Spawn("one", Contest::Enter(w.store, seen, only_requested, results[0]));
  group.Spawn("two", Contest::Enter(other, seen, only_requested, results[1]));
  w.Run(group.Join());
  EXPECT_NE(results[0].has_value(), results[1].has_value());
  EXPECT_EQ(w.Children("/nodepool/requests-lock/200-0000000000").size(), 1u);
  w.Run(other_client->Close());
}

// A task that is cancelled at any instant of an acceptance leaves no contender.
TEST_F(StoreTest, ACancelledAcceptanceLeavesNoContender) {
  struct Accepting {
    static Task<> Run(Store& store, StoredRequest seen, bool& is_accepted) {
      std::function<Change(NodeRequest&)> to_pending = ToState(RequestState::kPending);
      std::optional<LockedRequest> locked = co_await store.requests.Accept(std::move(seen), to_pending);
      is_accepted = locked.has_value();
    }
  };
  for (bool has_directory : {false, true}) {
    for (int instant = 0; instant < 60; ++instant) {
      World world;
      world.Put("/nodepool/requests-lock", "");
      if (has_directory) world.Put("/nodepool/requests-lock/200-0000000000", "");
      RequestId id = world.Run(world.store.requests.Create("200", Requested("small"), false));
      StoredRequest seen = *world.Run(world.store.requests.Read(id));
      world.memory.SetLatency(std::chrono::milliseconds(4));
      bool is_accepted = false;
      TaskGroup group(world.time.loop(), log::Logger("test"));
      TaskGroup::TaskId task = group.Spawn("accept", Accepting::Run(world.store, seen, is_accepted));
      world.time.Advance(std::chrono::milliseconds(instant));
      group.Cancel(task);
      world.Run(group.Join());
      world.time.Advance(std::chrono::seconds(1));
      if (is_accepted) continue;
      EXPECT_TRUE(world.Children("/nodepool/requests-lock/200-0000000000").empty()) << instant;
    }
  }
}

// D-06
TEST_F(StoreTest, ACancelledTaskRemovesTheLockDirectoryOfAVanishedRequest) {
  struct Locking {
    static Task<> Run(Store& store, RequestId id) { co_await store.requests.TryLock(id); }
  };
  std::string directory = "/nodepool/requests-lock/200-0000000000";
  RequestId id = w.Run(w.store.requests.Create("200", Requested("small"), false));
  w.memory.SetLatency(std::chrono::milliseconds(4));
  TaskGroup group(w.time.loop(), log::Logger("test"));
  TaskGroup::TaskId task = group.Spawn("lock", Locking::Run(w.store, id));
  auto await_contenders = [&](std::size_t count) {
    for (int i = 0; i < 100 && w.Children(directory).size() != count; ++i) {
      w.time.Advance(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(w.Children(directory).size(), count);
  };
  await_contenders(1);
  w.Erase("/nodepool/requests/" + id.value);
  await_contenders(0);
  group.Cancel(task);
  w.Run(group.Join());
  EXPECT_TRUE(w.Children("/nodepool/requests-lock").empty());
}

TEST_F(StoreTest, ATaskCancelledWhileItLocksANodeLeavesNoContender) {
  struct Locking {
    static Task<> Run(Store& store, NodeId id, bool& is_locked) {
      std::optional<LockedNode> locked = co_await store.nodes.TryLock(id);
      is_locked = locked.has_value();
    }
  };
  bool is_over = false;
  for (int steps = 0; !is_over; ++steps) {
    ASSERT_LT(steps, 1000);
    World world;
    NodeId id = world.Run(world.store.nodes.Create(InitNode()));
    bool is_locked = false;
    TaskGroup group(world.time.loop(), log::Logger("test"));
    group.Spawn("lock", Locking::Run(world.store, id, is_locked));
    world.time.loop().context().restart();
    for (int i = 0; i < steps && group.size() > 0; ++i) world.time.loop().context().poll_one();
    is_over = group.size() == 0;
    world.Run(group.Stop());
    EXPECT_EQ(world.Run(world.store.nodes.Contenders(id)).size(), is_locked ? 1u : 0u) << steps;
  }
}

TEST_F(StoreTest, CreatingALockedNodeIsTwoWrites) {
  NewNode();
  std::optional<LockedNode> node;
  EXPECT_EQ(Writes([&] { node = NewNode(); }), 2u);
  EXPECT_EQ(node->id().str(), "0000000001");
  EXPECT_EQ(node->record().state, NodeState::kBuilding);
  EXPECT_TRUE(node->record().created_time);
  EXPECT_EQ(w.Children(NodePath(*node) + "/lock").size(), 1u);
  EXPECT_EQ(w.Run(w.store.nodes.Read(node->id()))->record.state, NodeState::kBuilding);
  EXPECT_EQ(w.Run(w.store.nodes.List()).size(), 2u);
  EXPECT_FALSE(w.Run(w.store.nodes.TryLock(node->id())));
}

TEST_F(StoreTest, TheCreationTimeIsThatOfTheFirstStateUnlessTheRecordHasOne) {
  Node node = InitNode();
  node.SetState(NodeState::kInit, WallTime(std::chrono::seconds(1'700'000'000)));
  NodeId fresh = w.Run(w.store.nodes.Create(node));
  EXPECT_EQ(w.Run(w.store.nodes.Read(fresh))->record.created_time, node.state_time);
  node.created_time = node.state_time - std::chrono::hours(1);
  NodeId older = w.Run(w.store.nodes.Create(node));
  EXPECT_EQ(w.Run(w.store.nodes.Read(older))->record.created_time, node.created_time);
}

TEST_F(StoreTest, UpdatingANodeIsOneWriteAndKeepsUnknownKeys) {
  LockedNode node = NewNode();
  Node foreign = node.record();
  foreign.foreign.Add("build_id", 4);
  w.Put(NodePath(node), ToJson(foreign));  // as the Jenkins plugin does without a lock (D-05)
  EXPECT_TRUE(w.Run(node.Update(ToState(NodeState::kReady))));
  EXPECT_EQ(w.Run(w.store.nodes.Read(node.id()))->record.foreign, foreign.foreign);
  EXPECT_EQ(Writes([&] { w.Run(node.Update(ToState(NodeState::kUsed))); }), 1u);
  auto skip = [](Node&) { return Change::kSkip; };
  EXPECT_EQ(Writes([&] { EXPECT_FALSE(w.Run(node.Update(skip))); }), 0u);
}

// As a server refuses whose tree may not grow any more.
TEST_F(StoreTest, AWriteThatTheServerRefusesIsNotRepeated) {
  LockedNode node = NewNode();
  w.memory.SetLatency(std::chrono::milliseconds(4));
  w.memory.tree().LimitBytes(w.memory.tree().bytes());
  auto grow = [](Node& record) {
    record.comment = "longer than before";
    return Change::kWrite;
  };
  EXPECT_EQ(Writes([&] { w.time.Run(node.Update(grow), std::chrono::seconds(1)); }), 1u);
  EXPECT_EQ(w.Run(w.store.nodes.Read(node.id()))->record.comment, std::nullopt);
}

// coordination.17.8: nodes are unlocked before the request is written, the request last.
TEST_F(StoreTest, FulfillingIsOneWriteInTheRightOrder) {
  LockedRequest request = Accepted();
  LockedNode first = NewNode();
  LockedNode second = NewNode();
  std::vector<std::string> order;
  w.memory.tree().OnChange([&](const zk::DataTree::Change& change) { order.push_back(change.event.path); });
  bool is_done = false;
  std::vector<LockedNode*> nodes{&first, &second};
  EXPECT_EQ(Writes([&] { is_done = w.Run(request.Fulfil(nodes, ToState(RequestState::kFulfilled))); }), 1u);
  EXPECT_TRUE(is_done);
  ASSERT_EQ(order.size(), 4u);
  EXPECT_EQ(order[0].find("/nodepool/nodes/0000000000/lock/"), 0u);
  EXPECT_EQ(order[1].find("/nodepool/nodes/0000000001/lock/"), 0u);
  EXPECT_EQ(order[2], "/nodepool/requests/200-0000000000");
  EXPECT_EQ(order[3].find("/nodepool/requests-lock/200-0000000000/"), 0u);
}

// coordination.17.25
TEST_F(StoreTest, FulfillingAVanishedRequestDoesNothing) {
  LockedRequest request = Accepted();
  LockedNode node = NewNode();
  w.Run(w.store.requests.Delete(request.id()));
  std::string before = w.Picture();
  std::vector<LockedNode*> nodes{&node};
  EXPECT_FALSE(w.Run(request.Fulfil(nodes, ToState(RequestState::kFulfilled))));
  EXPECT_EQ(w.Picture(), before);
  EXPECT_FALSE(w.Run(request.UpdateAndUnlock(ToState(RequestState::kRequested))));
  EXPECT_TRUE(w.Children("/nodepool/requests-lock/200-0000000000").empty());
}

TEST_F(StoreTest, FulfillingWithANodeThatWasErasedIsAConflict) {
  LockedRequest request = Accepted();
  LockedNode node = NewNode();
  w.Erase(NodePath(node));
  std::vector<LockedNode*> nodes{&node};
  EXPECT_EQ(VerdictThrown([&] { w.Run(request.Fulfil(nodes, ToState(RequestState::kFulfilled))); }),
            Verdict::kConflict);
  EXPECT_TRUE(request.is_held());
}

// D-06: the directory of a request that is gone is removed when it has no contender.
TEST_F(StoreTest, RequestLocksAreRemovedWithTheirRequest) {
  LockedRequest request = Accepted();
  EXPECT_TRUE(w.Run(request.UpdateAndUnlock(ToState(RequestState::kRequested))));
  std::string directory = "/nodepool/requests-lock/200-0000000000";
  EXPECT_THAT(w.Run(w.store.requests.Gone({request.id()})), ::testing::IsEmpty());
  w.Run(w.store.requests.Delete(request.id()));
  EXPECT_THAT(w.Run(w.store.requests.Gone({request.id()})), ElementsAre(request.id()));
  w.Put(directory + "/x__lock__0000000009", "");
  w.Run(w.store.requests.RemoveLocks({request.id()}));
  EXPECT_TRUE(w.Exists(directory));
  w.Erase(directory + "/x__lock__0000000009");
  w.Run(w.store.requests.RemoveLocks({request.id()}));
  EXPECT_FALSE(w.Exists(directory));
  w.Run(w.store.requests.RemoveLocks({request.id()}));
}

// D-07 and coordination.6.5: neither locking nor reading recreates a node.
TEST_F(StoreTest, AVanishedNodeLeavesNothingBehind) {
  LockedNode node = NewNode();
  w.Erase(NodePath(node));
  std::string before = w.Picture();
  EXPECT_FALSE(w.Run(w.store.nodes.TryLock(node.id())));
  SteadyTime deadline = w.time.loop().SteadyNow() + std::chrono::seconds(5);
  EXPECT_EQ(VerdictThrown([&] { w.Run(w.store.nodes.Lock(node.id(), deadline)); }), Verdict::kNotFound);
  EXPECT_TRUE(w.Run(w.store.nodes.Contenders(node.id())).empty());
  EXPECT_FALSE(w.Run(w.store.nodes.Read(node.id())));
  EXPECT_FALSE(w.Run(w.store.nodes.UpdateUnlocked(node.id(), ToState(NodeState::kUsed))));
  EXPECT_EQ(VerdictThrown([&] { w.Run(node.Update(ToState(NodeState::kReady))); }), Verdict::kNotFound);
  EXPECT_EQ(w.Picture(), before);
}

// coordination.17.42
TEST_F(StoreTest, WaitingForANodeEndsAtTheDeadline) {
  LockedNode node = NewNode();
  std::string before = w.Picture();
  SteadyTime deadline = w.time.loop().SteadyNow() + std::chrono::seconds(5);
  EXPECT_FALSE(w.Run(w.store.nodes.Lock(node.id(), deadline)));
  EXPECT_EQ(w.Picture(), before);
  EXPECT_EQ(w.Run(w.store.nodes.Contenders(node.id())).size(), 1u);
  w.Run(node.Unlock());
  std::optional<LockedNode> again = w.Run(w.store.nodes.Lock(node.id(), deadline, "np01-17"));
  ASSERT_TRUE(again);
  std::string contender = w.Children(NodePath(node) + "/lock").at(0);
  EXPECT_EQ(w.Data(NodePath(node) + "/lock/" + contender), "np01-17");
}

// D-08: each kind of bad record is an error of its own and is left unlocked.
TEST_F(StoreTest, AMalformedNodeIsAnErrorAndUnlocked) {
  for (std::string data : {"", "{", "\xff", "[]", "{\"state\": \"bogus\"}", "{\"type\": 7}"}) {
    w.Put("/nodepool/nodes/0000000005", data);
    NodeId id("0000000005");
    EXPECT_EQ(VerdictThrown([&] { w.Run(w.store.nodes.TryLock(id)); }), Verdict::kInvalid) << data;
    EXPECT_EQ(VerdictThrown([&] { w.Run(w.store.nodes.Read(id)); }), Verdict::kInvalid) << data;
    EXPECT_TRUE(w.Run(w.store.nodes.Contenders(id)).empty()) << data;
  }
}

TEST_F(StoreTest, UpdatingWithoutALockFollowsOtherWriters) {
  NodeId id = w.Run(w.store.nodes.Create(InitNode()));
  EXPECT_EQ(Writes([&] { EXPECT_TRUE(w.Run(w.store.nodes.UpdateUnlocked(id, ToState(NodeState::kReady)))); }),
            1u);
  EXPECT_EQ(w.Run(w.store.nodes.Read(id))->record.state, NodeState::kReady);
}

// D-05: once the session is over nothing is written under its locks.
TEST_F(StoreTest, ALostSessionWritesNothing) {
  LockedRequest request = Accepted();
  LockedNode node = NewNode();
  w.memory.ExpireSession(*w.client);
  zk::Session old = w.client->session();
  ASSERT_TRUE(w.time.RunUntil(
      [&] { return w.client->state() == zk::SessionState::kConnected && w.client->session() != old; }));
  std::string before = w.Picture();
  EXPECT_FALSE(node.is_held());
  EXPECT_FALSE(request.is_held());
  auto lost = [&](Task<bool> task) { return VerdictThrown([&] { w.Run(std::move(task)); }); };
  std::vector<LockedNode*> nodes{&node};
  EXPECT_EQ(lost(node.Update(ToState(NodeState::kReady))), Verdict::kLostSession);
  EXPECT_EQ(lost(request.Update(ToState(RequestState::kFailed))), Verdict::kLostSession);
  EXPECT_EQ(lost(request.UpdateAndUnlock(ToState(RequestState::kFailed))), Verdict::kLostSession);
  EXPECT_EQ(lost(request.Fulfil(nodes, ToState(RequestState::kFailed))), Verdict::kLostSession);
  EXPECT_EQ(VerdictThrown([&] { w.Run(node.Remove()); }), Verdict::kLostSession);
  w.Run(node.Unlock());
  EXPECT_EQ(w.Picture(), before);
}

// D-05: a contender that was removed by force is not a lock any more.
TEST_F(StoreTest, AForcedUnlockIsNoticedByTheNextWrite) {
  LockedNode node = NewNode();
  std::string lock = NodePath(node) + "/lock";
  w.Erase(lock + "/" + w.Children(lock).at(0));
  std::string before = w.Picture();
  EXPECT_EQ(VerdictThrown([&] { w.Run(node.Update(ToState(NodeState::kReady))); }), Verdict::kLostSession);
  EXPECT_EQ(w.Picture(), before);
}

TEST_F(StoreTest, NamedLocksExclude) {
  std::optional<zk::HeldLock> lock = w.Run(w.store.tree.TryLockNamed("static/p/host:22"));
  ASSERT_TRUE(lock);
  EXPECT_FALSE(w.Run(w.store.tree.TryLockNamed("static/p/host:22")));
  EXPECT_TRUE(w.Run(w.store.tree.TryLockNamed("static/p/host:23")));
  EXPECT_TRUE(w.Exists("/nodepool/locks/static%2Fp%2Fhost:22"));
  w.Run(w.store.tree.Unlock(*lock));
  EXPECT_TRUE(w.Run(w.store.tree.TryLockNamed("static/p/host:22")));
}

}  // namespace
}  // namespace nodepool::store
