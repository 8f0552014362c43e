#include "zk/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/write.hpp>
#include <future>
#include <list>

#include "base/ids.h"
#include "base/testing/test_environment.h"
#include "zk/server/journal.h"
#include "zk/wire/wire_for_test.h"

namespace nodepool::zk::server {

// What tests from outside (tests/peers) cannot see of the embedded server.

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;

class ServerTest : public ::testing::Test, protected RealTime {
 protected:
  ServerOptions Options() const {
    ServerOptions options;
    options.port = 0;
    options.journal = folder / "state.sqlite";
    return options;
  }
  static WireOptions OptionsFor(const Server& server) {
    WireOptions options;
    options.servers = {{"127.0.0.1", server.port()}};
    return options;
  }
  // Nothing is written to the disk until the result is given a value.
  static std::promise<void> BlockDisk(BlockingPool& disk) {
    std::promise<void> release;
    auto wait = std::make_shared<std::future<void>>(release.get_future());
    disk.Post([wait] { wait->wait(); });
    return release;
  }
  testing::TemporaryFolder folder;
};

Task<> CreateAndNote(WireClient& client, std::string path, bool& is_answered) {
  (void)co_await client.Create(std::move(path), "", CreateMode::kPersistent);
  is_answered = true;
}

Task<> LookAndNote(WireClient& client, std::string path, bool& is_answered) {
  (void)co_await client.Exists(std::move(path));
  is_answered = true;
}

TEST_F(ServerTest, NoClientSeesAWriteBeforeItIsOnDisk) {
  BlockingPool disk(1);
  Server server(loop, disk, Options());
  Await(server.Start());
  {
    TestClient writer(*this, OptionsFor(server)), reader(*this, OptionsFor(server));
    EventLog events;
    Subscription watch = Await(reader->AddWatch("/a", WatchMode::kPersistent, events.watcher()));
    ASSERT_TRUE(writer.WaitFor(SessionState::kConnected));
    std::promise<void> release = BlockDisk(disk);
    bool is_written = false, is_read = false;
    TaskGroup tasks(loop, log::Logger("test"));
    tasks.Spawn("write", CreateAndNote(*writer, "/a", is_written));
    EXPECT_FALSE(Until([&] { return is_written; }, milliseconds(100)));
    tasks.Spawn("read", LookAndNote(*reader, "/a", is_read));
    EXPECT_FALSE(Until([&] { return is_written || is_read; }, milliseconds(100)));
    EXPECT_THAT(events.events(), ElementsAre());
    release.set_value();
    EXPECT_TRUE(Until([&] { return is_written && is_read; }));
    EXPECT_THAT(events.events(), ElementsAre("created /a"));
    Await(tasks.Join());
  }
  Await(server.Stop());
}

TEST_F(ServerTest, WritesThatWaitForTheDiskAreStoredTogether) {
  BlockingPool disk(1);
  Server server(loop, disk, Options());
  Await(server.Start());
  {
    TestClient client(*this, OptionsFor(server));
    ASSERT_TRUE(client.WaitFor(SessionState::kConnected));
    Traffic before = server.traffic();
    std::promise<void> release = BlockDisk(disk);
    std::vector<Task<Result<Created>>> writes;
    for (int i = 0; i < 500; ++i) {
      writes.push_back(client->Create(fmt::format("/{}", i), "", CreateMode::kPersistent));
    }
    EXPECT_TRUE(Until([&] { return server.traffic().received - before.received >= writes.size(); }));
    release.set_value();
    for (auto& write : writes) EXPECT_TRUE(Await(std::move(write)));
    EXPECT_LE(server.traffic().commits - before.commits, 10u);
  }
  Await(server.Stop());
}

// Keeps the server from writing to its database, as a full disk would.
class BrokenDisk {
 public:
  explicit BrokenDisk(const std::string& path) : database_(path) { database_.Execute("BEGIN IMMEDIATE"); }
  void Repair() { database_.Execute("ROLLBACK"); }

 private:
  Sqlite database_;
};

TEST_F(ServerTest, TheMessageOfAStartThatFailsSaysWhatIsInTheWay) {
  BlockingPool disk(1);
  Server server(loop, disk, Options());
  Await(server.Start());
  auto message = [&](const ServerOptions& options) -> std::string {
    try {
      Server second(loop, disk, options);
      Await(second.Start());
      return "it has started";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(message(Options()), EndsWith(fmt::format("is in use by process {}", getpid())));
  ServerOptions same_port = Options();
  same_port.journal = folder / "other.sqlite";
  same_port.port = server.port();
  EXPECT_THAT(message(same_port), EndsWith("Address already in use; set embedded-zookeeper.port"));
  Await(server.Stop());
}

TEST_F(ServerTest, NoClientIsAnsweredUntilTheDiskWorksAgain) {
  BlockingPool disk(1);
  ServerOptions options = Options();
  std::vector<std::string> troubles;
  options.on_disk_trouble = [&](const std::string& cause) { troubles.push_back(cause); };
  Server server(loop, disk, options);
  Await(server.Start());
  {
    log::Capture log;
    TestClient client(*this, OptionsFor(server));
    ASSERT_TRUE(client.WaitFor(SessionState::kConnected));
    BrokenDisk broken(Options().journal);
    bool is_written = false;
    TaskGroup tasks(loop, log::Logger("test"));
    tasks.Spawn("write", CreateAndNote(*client, "/a", is_written));
    EXPECT_TRUE(Until([&] { return !troubles.empty(); }));
    EXPECT_FALSE(Until([&] { return is_written; }, milliseconds(200)));
    broken.Repair();
    EXPECT_TRUE(Until([&] { return is_written; }));
    Await(tasks.Join());
    EXPECT_THAT(troubles, ElementsAre("database is locked", ""));
    EXPECT_EQ(log.Count("is written again"), 1);
  }
  Await(server.Stop());
}

TEST_F(ServerTest, FailedWritesAreRepeatedAtTheEndOrMissingAsAWhole) {
  for (bool is_repaired : {true, false}) {
    BlockingPool disk(1);
    std::optional<Server> server(std::in_place, loop, disk, Options());
    Await(server->Start());
    {
      TestClient client(*this, OptionsFor(*server));
      ASSERT_TRUE(client.WaitFor(SessionState::kConnected));
      BrokenDisk broken(Options().journal);
      bool is_written = false;
      TaskGroup tasks(loop, log::Logger("test"));
      tasks.Spawn("write", CreateAndNote(*client, fmt::format("/{}", is_repaired), is_written));
      EXPECT_FALSE(Until([&] { return is_written; }, milliseconds(100)));
      tasks.Spawn("write", CreateAndNote(*client, fmt::format("/{}/below", is_repaired), is_written));
      EXPECT_FALSE(Until([&] { return is_written; }, milliseconds(100)));
      if (is_repaired) broken.Repair();
      Await(server->Stop());
      Await(tasks.Stop());
    }
    server.emplace(loop, disk, Options());
    Await(server->Start());
    {
      TestClient client(*this, OptionsFor(*server));
      Result<Stat> found = Await(client->Exists(fmt::format("/{}/below", is_repaired)));
      EXPECT_EQ(found.has_value(), is_repaired);
    }
    Await(server->Stop());
  }
}

TEST_F(ServerTest, SessionsOfItsOwnProcessEndWithTheProcess) {
  BlockingPool disk(1);
  ServerOptions options = Options();
  options.own_password = NewPassword();
  std::optional<Server> server(std::in_place, loop, disk, options);
  Await(server->Start());
  auto left = [&](const WireOptions& how, const std::string& path) {
    auto client = std::make_unique<WireClient>(loop, random, how);
    EXPECT_TRUE(Await(client->Create(path, "", CreateMode::kEphemeral)));
    return client;
  };
  WireOptions own = OptionsFor(*server);
  own.opening_password = options.own_password;
  auto own_client = left(own, "/own");
  auto other_client = left(OptionsFor(*server), "/other");
  // As by SIGKILL: nobody closes a session.
  own_client.reset();
  other_client.reset();
  Await(server->Stop());
  options.own_password = NewPassword();
  server.emplace(loop, disk, options);
  Await(server->Start());
  {
    TestClient client(*this, OptionsFor(*server));
    EXPECT_EQ(Await(client->Exists("/own")).error(), Code::kNoNode);
    EXPECT_TRUE(Await(client->Exists("/other")));
  }
  Await(server->Stop());
}

// A client that connects and says nothing, or `said`.
class RawClient {
 public:
  RawClient(Loop& loop, const Server& server, const std::string& said = "") : socket_(loop.context()) {
    auto port = static_cast<std::uint16_t>(server.port());
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
    boost::asio::write(socket_, boost::asio::buffer(said));
    socket_.non_blocking(true);
  }
  // Whether the server has closed the connection.
  bool is_closed() {
    boost::system::error_code error;
    char bytes[256];
    while (!error) socket_.read_some(boost::asio::buffer(bytes), error);
    return error != boost::asio::error::would_block;
  }

 private:
  boost::asio::ip::tcp::socket socket_;
};

TEST_F(ServerTest, WarningsAboutClientsAreLimited) {
  log::Capture log;
  BlockingPool disk(1);
  std::optional<Server> server(std::in_place, loop, disk, Options());
  Await(server->Start());
  for (int i = 0; i < 25; ++i) {
    RawClient client(loop, *server, "GET / HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(Until([&] { return client.is_closed(); }));
  }
  Await(server->Stop());
  server.reset();
  EXPECT_EQ(log.Count("Closing the connection to ZooKeeper client"), 10);
  EXPECT_EQ(log.Count("15 more ZooKeeper clients were refused or disconnected"), 1);
}

TEST_F(ServerTest, SilentConnectionsGiveTheirPlaceToClientsThatSpeak) {
  BlockingPool disk(1);
  ServerOptions options = Options();
  options.connections = 1;
  Server server(loop, disk, options);
  Await(server.Start());
  {
    std::list<RawClient> silent;
    for (int i = 0; i < 110; ++i) {
      silent.emplace_back(loop, server);
      Until([] { return true; });
    }
    EXPECT_TRUE(Until([&] { return silent.front().is_closed(); })) << "the longest silent one";
    EXPECT_FALSE(silent.back().is_closed());
    TestClient client(*this, OptionsFor(server));
    EXPECT_TRUE(client.WaitFor(SessionState::kConnected, seconds(5))) << "before any silent one times out";
  }
  Await(server.Stop());
}

TEST_F(ServerTest, ClientsOfItsOwnProcessAlwaysFindAPlace) {
  BlockingPool disk(1);
  ServerOptions options = Options();
  options.connections = 1;
  options.sessions = 1;
  options.own_password = NewPassword();
  Server server(loop, disk, options);
  Await(server.Start());
  {
    TestClient first(*this, OptionsFor(server));
    ASSERT_TRUE(first.WaitFor(SessionState::kConnected));
    TestClient other(*this, OptionsFor(server));
    EXPECT_FALSE(other.WaitFor(SessionState::kConnected, milliseconds(300)));
    WireOptions own = OptionsFor(server);
    own.opening_password = options.own_password;
    TestClient own_client(*this, own);
    EXPECT_TRUE(own_client.WaitFor(SessionState::kConnected));
    EXPECT_EQ(first->state(), SessionState::kConnected);
  }
  Await(server.Stop());
}

TEST_F(ServerTest, SessionsAreLimited) {
  ServerOptions options = Options();
  options.sessions = 1;
  BlockingPool disk(1);
  Server server(loop, disk, options);
  Await(server.Start());
  {
    TestClient first(*this, OptionsFor(server));
    ASSERT_TRUE(first.WaitFor(SessionState::kConnected));
    TestClient second(*this, OptionsFor(server));
    EXPECT_FALSE(Until([&] { return second->state() == SessionState::kConnected; }, milliseconds(300)));
    EXPECT_EQ(first->state(), SessionState::kConnected);
  }
  Await(server.Stop());
}

TEST_F(ServerTest, AbandonedSessionsGiveTheirPlaceToNewOnes) {
  ServerOptions options = Options();
  options.sessions = 2;
  BlockingPool disk(1);
  Server server(loop, disk, options);
  Await(server.Start());
  {
    TestClient holder(*this, OptionsFor(server));
    EXPECT_TRUE(Await(holder->Create("/held", "", CreateMode::kEphemeral)));
    auto leaving = std::make_unique<WireClient>(loop, random, OptionsFor(server));
    ASSERT_TRUE(Until([&] { return leaving->state() == SessionState::kConnected; }));
    leaving.reset();
    TestClient next(*this, OptionsFor(server));
    EXPECT_TRUE(next.WaitFor(SessionState::kConnected, seconds(5))) << "before the other's time-out";
    EXPECT_TRUE(Await(next->Exists("/held")));
  }
  Await(server.Stop());
}

std::string Dump(const DataTree& tree, const std::string& path = "/") {
  NodeData node = *tree.Get(path);
  const Stat& stat = node.stat;
  std::string text =
      fmt::format("{} '{}' {} {} {} {} {} {} {} {}\n", path, node.data, stat.czxid, stat.mzxid, stat.pzxid,
                  stat.ctime, stat.version, stat.cversion, stat.aversion, stat.ephemeral_owner);
  Children children = *tree.GetChildren(path);
  for (const std::string& name : children.names) {
    text += Dump(tree, (path == "/" ? "" : path) + "/" + name);
  }
  return text;
}

// After any operations, the journal restores the same tree.
TEST_F(ServerTest, JournalRestoresTheSameTree) {
  SeededRandom random(4711);
  auto pick = [&](auto... options) {
    std::vector<std::string> all{options...};
    return all[random.Below(all.size())];
  };
  Engine engine(Engine::Limits{});
  for (std::int64_t id : {1, 2, 3}) engine.OpenSession({id, std::string(16, 'p'), 5000});
  for (int round = 0; round < 20; ++round) {
    Journal journal(folder / "tree.sqlite");
    for (int i = 0; i < 30; ++i) {
      Engine::Peer peer;
      peer.session = static_cast<std::int64_t>(1 + random.Below(3));
      if (engine.FindSession(peer.session) == nullptr) continue;
      std::string path = "/" + pick("a", "b") + pick("", "/c", "/d", "/c/e");
      Request request;
      request.op = protocol::OpCode::kCreate;
      CreateRequest create;
      create.op = CreateOp{path, pick("x", std::string("\0\xff", 2)), CreateMode(random.Below(5)), nullptr};
      create.acl = {{permission::kAll, pick("world", "digest"), "anyone"}};
      if (create.acl[0].scheme == "digest") create.acl[0].id = "user:word";
      request.body = create;
      if (random.Below(3) == 0) {
        request.op = protocol::OpCode::kDelete;
        request.body = DeleteOp{path};
      } else if (random.Below(3) == 0) {
        request.op = protocol::OpCode::kSetData;
        request.body = SetOp{path, pick("", "new")};
      }
      std::string answer;
      engine.Execute(request, peer, FromSeconds(1000 + i), answer);
    }
    if (round == 10) engine.CloseSession(3);
    journal.Write(engine.TakeChanges());
    EXPECT_TRUE(engine.TakeChanges().empty());
    Journal::Contents contents = journal.Load();
    EXPECT_GT(contents.zxid, engine.tree().last_zxid());
    Engine again(Engine::Limits{});
    again.Restore(std::move(contents.sessions), std::move(contents.znodes), contents.zxid);
    ASSERT_EQ(Dump(again.tree()), Dump(engine.tree()));
    ASSERT_EQ(again.tree().bytes(), engine.tree().bytes());
    ASSERT_EQ(again.tree().size(), engine.tree().size());
    ASSERT_EQ(again.sessions().size(), engine.sessions().size());
  }
}

TEST(FreeSpaceTest, WhatIsLeftIsNamedWhereItIsLittle) {
  EXPECT_EQ(ShortageText("/state", 123'456), "; 0.1 MB are free in /state");
  EXPECT_EQ(ShortageText("/state", 1'000'000'000), "");
  EXPECT_EQ(ShortageNear("/no/such/folder/zookeeper.sqlite"), "") << "it is not known";
}

}  // namespace

}  // namespace nodepool::zk::server
