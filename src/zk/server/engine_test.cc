#include "zk/server/engine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace nodepool::zk::server {

// What keeps clients from filling the memory through requests, answers and watches.

namespace {

using protocol::OpCode;
using ::testing::HasSubstr;

class EngineBoundsTest : public ::testing::Test {
 protected:
  explicit EngineBoundsTest(Engine::Limits limits = {}) : engine(limits) {
    engine.OpenSession({1, std::string(16, 'p'), 5000});
  }

  Engine::Peer& Client(ServerWatches::ConnectionId connection_id) {
    Engine::Peer& peer = peers[connection_id];
    peer.connection_id = connection_id;
    peer.session = 1;
    return peer;
  }
  // The size of the frame of the answer.
  template <class Body>
  std::size_t Execute(OpCode op, Body body, ServerWatches::ConnectionId connection_id = 1) {
    Request request;
    request.op = op;
    request.body = std::move(body);
    std::string answer;
    engine.Execute(request, Client(connection_id), FromSeconds(1), answer);
    return answer.size();
  }
  // What the log says of a client whose request ends its connection; "answered" if it does not.
  template <class Body>
  std::string FaultOf(OpCode op, Body body, ServerWatches::ConnectionId connection_id = 1) {
    try {
      Execute(op, std::move(body), connection_id);
      return "answered";
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kFail);
      return error.what();
    }
  }
  void Create(const std::string& path, std::string data, CreateMode mode = CreateMode::kPersistent) {
    CreateRequest create;
    create.op = CreateOp{path, std::move(data), mode};
    create.acl = {{permission::kAll, "world", "anyone"}};
    Execute(OpCode::kCreate, create);
  }

  Engine engine;
  std::map<ServerWatches::ConnectionId, Engine::Peer> peers;
};

class EngineAnswersTest : public EngineBoundsTest {
 protected:
  EngineAnswersTest() : EngineBoundsTest(LimitsOfAnswers()) {}
  static Engine::Limits LimitsOfAnswers() {
    Engine::Limits limits;
    limits.answer_bytes = 10'000;
    return limits;
  }
  static MultiReadRequest Reads(const std::string& path, OpCode op, int count) {
    MultiReadRequest request;
    for (int i = 0; i < count; ++i) request.parts.push_back({op, path});
    return request;
  }
};

TEST_F(EngineAnswersTest, SeveralReadsAreBoundedTogether) {
  Create("/a", std::string(3000, 'x'));
  EXPECT_GT(Execute(OpCode::kMultiRead, Reads("/a", OpCode::kGetData, 3)), 9000u);
  EXPECT_THAT(FaultOf(OpCode::kMultiRead, Reads("/a", OpCode::kGetData, 4)),
              HasSubstr("the answer to its request would be larger than 10000 bytes"));
}

TEST_F(EngineAnswersTest, SeveralListsAreBoundedTogether) {
  Create("/a", "");
  for (int i = 0; i < 10; ++i) Create(fmt::format("/a/{}{}", std::string(300, 'x'), i), "");
  EXPECT_GT(Execute(OpCode::kMultiRead, Reads("/a", OpCode::kGetChildren, 3)), 9000u);
  EXPECT_THAT(FaultOf(OpCode::kMultiRead, Reads("/a", OpCode::kGetChildren, 4)),
              HasSubstr("larger than 10000 bytes"));
}

TEST_F(EngineAnswersTest, TheListOfEphemeralsIsBounded) {
  Create("/a", "");
  for (int i = 0; i < 9; ++i)
    Create(fmt::format("/a/{}{}", std::string(1000, 'x'), i), "", CreateMode::kEphemeral);
  EXPECT_GT(Execute(OpCode::kGetEphemerals, PathRequest{"/"}), 9000u);
  Create("/a/" + std::string(1000, 'y'), "", CreateMode::kEphemeral);
  EXPECT_THAT(FaultOf(OpCode::kGetEphemerals, PathRequest{"/"}), HasSubstr("larger than 10000 bytes"));
  EXPECT_EQ(FaultOf(OpCode::kGetEphemerals, PathRequest{"/b"}), "answered");
}

class EngineWatchesTest : public EngineBoundsTest {
 protected:
  EngineWatchesTest() : EngineBoundsTest(LimitsOfWatches()) {}
  static Engine::Limits LimitsOfWatches() {
    Engine::Limits limits;
    limits.watch_bytes = 10 * ServerWatches::BytesOf("/00");
    limits.all_watch_bytes = 25 * ServerWatches::BytesOf("/00");
    limits.few_watch_bytes = 2 * ServerWatches::BytesOf("/00");
    return limits;
  }
  // Sets watches of "/00", "/01", ... until the connection is to end; how many it set.
  int Watch(OpCode op, ServerWatches::ConnectionId connection_id) {
    for (int i = 0; i < 100; ++i) {
      std::string path = fmt::format("/{:02}", i);
      std::string fault = op == OpCode::kAddWatch ? FaultOf(op, AddWatchRequest{path, 0}, connection_id)
                                                  : FaultOf(op, PathRequest{path, true}, connection_id);
      if (fault == "answered") continue;
      EXPECT_THAT(fault, HasSubstr("watches"));
      return i;
    }
    return 100;
  }
};

TEST_F(EngineWatchesTest, TheWatchesOfAConnectionAreBounded) {
  EXPECT_EQ(Watch(OpCode::kExists, 1), 10);
  EXPECT_EQ(Watch(OpCode::kAddWatch, 2), 10);
  RestoreWatchesRequest restore;
  restore.paths.exist = std::vector<std::string>(11, "/00");
  EXPECT_THAT(FaultOf(OpCode::kSetWatches, restore, 3), HasSubstr("its watches would take more than"));
}

TEST_F(EngineWatchesTest, TheWatchesOfAllConnectionsAreBoundedTogether) {
  EXPECT_EQ(Watch(OpCode::kExists, 1), 10);
  EXPECT_EQ(Watch(OpCode::kExists, 2), 10);
  EXPECT_EQ(Watch(OpCode::kAddWatch, 3), 5);
  engine.RemoveWatches(1);
  EXPECT_EQ(Watch(OpCode::kExists, 4), 2) << "a client may always set a few; the memory is not free yet";
  while (engine.FreeWatches()) {
  }
  EXPECT_EQ(Watch(OpCode::kExists, 4), 10);
}

TEST_F(EngineAnswersTest, TheSizeOfAReadIsKnownBefore) {
  Create("/b", std::string(3000, 'x'));
  auto read = [](OpCode op) {
    std::string frame;
    JuteWriter out(frame);
    out.Int(1);
    out.Int(static_cast<std::int32_t>(op));
    out.String("/b");
    return frame;
  };
  for (OpCode op : {OpCode::kGetData, OpCode::kGetChildren, OpCode::kGetChildren2}) {
    EXPECT_EQ(PathThatIsRead(read(op)), "/b");
    EXPECT_THROW(PathThatIsRead(read(op).substr(0, 9)), Error);
  }
  EXPECT_EQ(PathThatIsRead(read(OpCode::kExists)), std::nullopt);
  EXPECT_EQ(PathThatIsRead("short"), std::nullopt);
  EXPECT_EQ(engine.SizeOf("/b"), 3000u);
  EXPECT_GE(engine.SizeOf("/"), 16u) << "the names of its children count";
  EXPECT_EQ(engine.SizeOf("/none"), 0u);
  EXPECT_EQ(engine.SizeOf("no path"), 0u);
}

// Which events a change sends, and by which access list, also where the same transaction has removed what
// they are about.

using protocol::OpCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Acl kOpen{{permission::kAll, "world", "anyone"}};
// Everybody may change the znode, and only the owner read it.
const Acl kSecret{{permission::kAll & ~permission::kRead, "world", "anyone"},
                  {permission::kAll, "digest", "owner:hash"}};

class EngineEventsTest : public ::testing::Test {
 protected:
  EngineEventsTest() {
    peer.connection_id = peer.session = 1;
    engine.OpenSession({1, std::string(16, 'p'), 5000});
    engine.OnEvent([this](ServerWatches::ConnectionId, const WatchEvent& event, const Acl* acl) {
      bool is_open = Permits(acl, permission::kRead, Identity());
      events.push_back(
          fmt::format("{} {}{}", static_cast<int>(event.type), event.path, is_open ? "" : " (secret)"));
    });
  }

  template <class Body>
  void Execute(OpCode op, Body body) {
    Request request;
    request.op = op;
    request.body = std::move(body);
    std::string answer;
    engine.Execute(request, peer, FromSeconds(1), answer);
  }
  static CreateRequest Creation(const std::string& path, const Acl& acl = kOpen,
                                CreateMode mode = CreateMode::kPersistent) {
    CreateRequest create;
    create.op = CreateOp{path, "", mode};
    create.acl = acl;
    return create;
  }
  void Create(const std::string& path, const Acl& acl = kOpen, CreateMode mode = CreateMode::kPersistent) {
    Execute(OpCode::kCreate, Creation(path, acl, mode));
  }
  void WatchChildren(const std::string& path) { Execute(OpCode::kGetChildren, PathRequest{path, true}); }
  void DeleteTogether(const std::vector<std::string>& paths) {
    MultiRequest multi;
    for (const std::string& path : paths) multi.parts.push_back({OpCode::kDelete, DeleteOp{path}});
    Execute(OpCode::kMulti, multi);
  }

  Engine engine{Engine::Limits()};
  Engine::Peer peer;
  std::vector<std::string> events;
};

TEST_F(EngineEventsTest, AChildEventOfAParentThatTheSameTransactionRemoves) {
  Create("/a");
  Create("/a/b");
  WatchChildren("/a");
  DeleteTogether({"/a/b", "/a"});
  EXPECT_THAT(events, ElementsAre("4 /a"));
  EXPECT_FALSE(engine.tree().Exists("/a"));
}

TEST_F(EngineEventsTest, TheListThatTheParentHadWhenTheChildChangedCounts) {
  Create("/a", kSecret);
  Create("/a/b");
  Execute(OpCode::kAddWatch, AddWatchRequest{"/a", static_cast<std::int32_t>(WatchMode::kPersistent)});
  MultiRequest again;
  again.parts = {{OpCode::kDelete, DeleteOp{"/a/b"}},
                 {OpCode::kDelete, DeleteOp{"/a"}},
                 {OpCode::kCreate, Creation("/a")},
                 {OpCode::kCreate, Creation("/a/b", kSecret)}};
  Execute(OpCode::kMulti, again);
  EXPECT_THAT(events, ElementsAre("4 /a (secret)", "2 /a (secret)", "1 /a", "4 /a"));
}

TEST_F(EngineEventsTest, AClosedSessionsZnodeAndItsParent) {
  Create("/a");
  engine.OpenSession({2, std::string(16, 'p'), 5000});
  peer.session = 2;
  Create("/a/e", kOpen, CreateMode::kEphemeral);
  WatchChildren("/a");
  engine.CloseSession(2);
  EXPECT_THAT(events, ElementsAre("4 /a"));
}

TEST_F(EngineEventsTest, AContainerIsRemovedForItsOwnChildrenOnly) {
  Create("/c", kOpen, CreateMode::kContainer);
  Create("/c/x");
  DeleteTogether({"/c/x"});
  EXPECT_TRUE(engine.HasEmptiedContainers());
  DeleteTogether({"/c"});
  Create("/c", kOpen, CreateMode::kContainer);
  EXPECT_EQ(engine.DeleteEmptyContainers(), 0) << "another container of that name, which never had children";
  EXPECT_TRUE(engine.tree().Exists("/c"));
}

TEST_F(EngineEventsTest, ARefusedTransactionSendsNothing) {
  Create("/a");
  Create("/a/b");
  WatchChildren("/a");
  DeleteTogether({"/a/b", "/a", "/missing"});
  EXPECT_THAT(events, IsEmpty());
}

}  // namespace

}  // namespace nodepool::zk::server
