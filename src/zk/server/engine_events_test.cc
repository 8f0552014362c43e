// Which events a change sends, and by which access list, also where the same transaction has removed what
// they are about.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zk/server/engine.h"

namespace nodepool::zk::server {
namespace {

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
