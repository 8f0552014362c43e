// WireClient against a real Apache ZooKeeper, and against the embedded server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "async/task_group.h"
#include "async/testing/run_ready.h"
#include "zk/testing/zookeeper_server.h"
#include "zk/wire/wire_for_test.h"

namespace nodepool::zk {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using testing::ZooKeeperServer;

class WireServerTest : public ::testing::Test, protected RealTime {
 protected:
  static void SetUpTestSuite() {
    server = new ZooKeeperServer;
    server->Start();
  }
  static void TearDownTestSuite() {
    delete server;
    server = nullptr;
  }

  // Each test works below a znode of its own.
  void SetUp() override {
    root = std::string("/") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    Await(client->Create(root, "", CreateMode::kPersistent));
  }

  static WireOptions OptionsFor(HostPort address) {
    WireOptions options;
    options.servers = {std::move(address)};
    return options;
  }

  static ZooKeeperServer* server;
  std::string root;
  TestClient client{*this, OptionsFor(server->address())};
};

ZooKeeperServer* WireServerTest::server = nullptr;

TEST_F(WireServerTest, CreateGetSetDelete) {
  auto created = Await(client->Create(root + "/a", "one", CreateMode::kPersistent));
  ASSERT_TRUE(created);
  EXPECT_EQ(created->path, root + "/a");
  EXPECT_EQ(created->stat.data_length, 3);
  EXPECT_EQ(Await(client->Create(root + "/a", "x", CreateMode::kPersistent)).error(), Code::kNodeExists);
  EXPECT_EQ(Await(client->Create(root + "/no/a", "x", CreateMode::kPersistent)).error(), Code::kNoNode);

  auto node = Await(client->Get(root + "/a"));
  ASSERT_TRUE(node);
  EXPECT_EQ(node->data, "one");
  EXPECT_EQ(node->stat, created->stat);
  EXPECT_EQ(Await(client->Get(root + "/b")).error(), Code::kNoNode);

  auto stat = Await(client->Set(root + "/a", "two!", 0));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->version, 1);
  EXPECT_EQ(Await(client->Exists(root + "/a")).value(), *stat);
  EXPECT_EQ(Await(client->Set(root + "/a", "x", 0)).error(), Code::kBadVersion);
  EXPECT_EQ(Await(client->Set(root + "/b", "x", -1)).error(), Code::kNoNode);

  Await(client->Create(root + "/a/child", "", CreateMode::kPersistent));
  EXPECT_EQ(Await(client->Delete(root + "/a", -1)).error(), Code::kNotEmpty);
  EXPECT_TRUE(Await(client->Delete(root + "/a/child", -1)));
  EXPECT_EQ(Await(client->Delete(root + "/a", 7)).error(), Code::kBadVersion);
  EXPECT_TRUE(Await(client->Delete(root + "/a", 1)));
  EXPECT_EQ(Await(client->Exists(root + "/a")).error(), Code::kNoNode);
  EXPECT_EQ(Await(client->Delete(root + "/a", -1)).error(), Code::kNoNode);
  Await(client->Sync(root));
}

TEST_F(WireServerTest, BinaryAndEmptyDataAndUnicodePaths) {
  std::string bytes("\0\xff\r\n\x80", 5);
  Await(client->Create(root + "/\u00fc\u4e2d", bytes, CreateMode::kPersistent));
  EXPECT_EQ(Await(client->Get(root + "/\u00fc\u4e2d"))->data, bytes);
  Await(client->Set(root + "/\u00fc\u4e2d", "", -1));
  EXPECT_EQ(Await(client->Get(root + "/\u00fc\u4e2d"))->data, "");
}

TEST_F(WireServerTest, ChildrenInAnyOrder) {
  for (const char* name : {"/c", "/a", "/b"}) Await(client->Create(root + name, "", CreateMode::kPersistent));
  auto children = Await(client->GetChildren(root));
  ASSERT_TRUE(children);
  EXPECT_THAT(children->names, UnorderedElementsAre("a", "b", "c"));
  EXPECT_EQ(children->stat.num_children, 3);
  EXPECT_EQ(Await(client->GetChildren(root + "/no")).error(), Code::kNoNode);
}

TEST_F(WireServerTest, ManyReadsInOneMessageAreIndependent) {
  using Kind = ReadOp::Kind;
  Await(client->Create(root + "/a", "one", CreateMode::kPersistent));
  Await(client->Create(root + "/a/child", "", CreateMode::kPersistent));
  std::uint64_t reads = client->counters().reads;
  std::vector<ReadOp> ops{{Kind::kData, root + "/a"},
                          {Kind::kData, root + "/no"},
                          {Kind::kChildren, root + "/a"},
                          {Kind::kChildren, root + "/no"},
                          {Kind::kData, root + "/a/child"}};
  std::vector<ReadResult> results = Await(client->ReadMany(ops));
  EXPECT_EQ(client->counters().reads, reads + 1);
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(results[0].node.data, "one");
  EXPECT_EQ(results[0].node.stat, Await(client->Exists(root + "/a")).value());
  EXPECT_EQ(results[1].code, Code::kNoNode);
  EXPECT_THAT(results[2].names, ElementsAre("child"));
  EXPECT_EQ(results[3].code, Code::kNoNode);
  EXPECT_EQ(results[4].code, Code::kOk);
  EXPECT_EQ(results[4].node.data, "");
  EXPECT_THROW(Await(client->ReadMany({{Kind::kData, "no/slash"}})), Error);
}

TEST_F(WireServerTest, SequencesUnderADirectoryAndWithPrefix) {
  EXPECT_EQ(Await(client->Create(root + "/", "", CreateMode::kPersistentSequential))->path,
            root + "/0000000000");
  EXPECT_EQ(Await(client->Create(root + "/200-", "", CreateMode::kEphemeralSequential))->path,
            root + "/200-0000000001");
}

TEST_F(WireServerTest, EphemeralsVanishWithTheirSession) {
  {
    TestClient other(*this, OptionsFor(server->address()));
    auto created = Await(other->Create(root + "/e", "", CreateMode::kEphemeral));
    EXPECT_EQ(created->stat.ephemeral_owner, other->session().id);
    EXPECT_EQ(Await(other->Create(root + "/e/x", "", CreateMode::kPersistent)).error(),
              Code::kNoChildrenForEphemerals);
  }
  EXPECT_EQ(Await(client->Exists(root + "/e")).error(), Code::kNoNode) << "Close ends the session at once";
}

TEST_F(WireServerTest, EmptiedContainersVanish) {
  EXPECT_TRUE(Await(client->Create(root + "/container", "", CreateMode::kContainer)));
  EXPECT_TRUE(Await(client->Create(root + "/container/child", "", CreateMode::kPersistent)));
  EventLog log;
  Await(client->ExistsAndWatch(root + "/container", log.watcher()));
  Await(client->Delete(root + "/container/child", -1));
  ASSERT_TRUE(Until([&] { return !log.events().empty(); }));
  EXPECT_THAT(log.events(), ElementsAre("deleted " + root + "/container"));
}

TEST_F(WireServerTest, TimeToLive) {
  if (ZooKeeperServer::KindFromEnvironment() == ZooKeeperServer::Kind::kEmbedded) {
    EXPECT_THAT(
        ErrorOf(client->CreateTtl(root + "/ttl", "", CreateMode::kPersistentTtl, seconds(1))).message(),
        HasSubstr("unimplemented"));
    return;
  }
  EXPECT_TRUE(Await(client->CreateTtl(root + "/ttl", "", CreateMode::kPersistentTtl, milliseconds(300))));
  auto numbered =
      Await(client->CreateTtl(root + "/ttl-", "", CreateMode::kPersistentSequentialTtl, seconds(60)));
  EXPECT_THAT(numbered->path, HasSubstr("/ttl-0000000001"));
  auto is_deleted = [&] { return server->Ask("dump").find("/ttl\n") == std::string::npos; };
  EXPECT_TRUE(Until(is_deleted));
  EXPECT_EQ(ErrorOf(client->Create(root + "/t2", "", CreateMode::kPersistentTtl)).verdict(),
            Verdict::kInvalid);
}

TEST_F(WireServerTest, TransactionIsAppliedWhole) {
  std::vector<Op> ops;
  ops.push_back(CreateOp{root + "/a", "1", CreateMode::kPersistent});
  ops.push_back(CreateOp{root + "/a/", "2", CreateMode::kEphemeralSequential});
  ops.push_back(SetOp{root + "/a", "3", 0});
  ops.push_back(CheckOp{root + "/a", 1});
  ops.push_back(CreateOp{root + "/box", "", CreateMode::kContainer});
  ops.push_back(DeleteOp{root + "/box", -1});
  MultiResult result = Await(client->Multi(ops));
  ASSERT_TRUE(result.ok()) << ToString(result.code());
  ASSERT_EQ(result.results.size(), 6u);
  EXPECT_EQ(result.results[0].path, root + "/a");
  EXPECT_EQ(result.results[1].path, root + "/a/0000000000");
  EXPECT_EQ(result.results[1].stat.ephemeral_owner, client->session().id);
  EXPECT_EQ(result.results[0].stat.mzxid, Await(client->Get(root + "/a"))->stat.czxid);
  EXPECT_EQ(result.results[2].stat.version, 1);
  EXPECT_EQ(Await(client->Get(root + "/a"))->data, "3");
}

TEST_F(WireServerTest, RefusedTransactionNamesTheOperationAndChangesNothing) {
  Await(client->Create(root + "/there", "", CreateMode::kPersistent));
  std::vector<Op> ops;
  ops.push_back(CreateOp{root + "/new", "", CreateMode::kPersistent});
  ops.push_back(SetOp{root + "/there", "x", 9});
  ops.push_back(DeleteOp{root + "/there", -1});
  MultiResult result = Await(client->Multi(ops));
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.failed, 1);
  EXPECT_EQ(result.code(), Code::kBadVersion);
  EXPECT_EQ(result.results[0].code, Code::kOk);
  EXPECT_EQ(result.results[2].code, Code::kRuntimeInconsistency);
  EXPECT_EQ(Await(client->Exists(root + "/new")).error(), Code::kNoNode);
  EXPECT_TRUE(Await(client->Multi({})).ok());
}

TEST_F(WireServerTest, OperationsArePipelinedInTheOrderOfTheCalls) {
  std::vector<Task<Result<Created>>> creates;
  for (int i = 0; i < 500; ++i) {
    creates.push_back(client->Create(root + "/n", std::to_string(i), CreateMode::kPersistentSequential));
  }
  auto read = client->GetChildren(root);
  for (int i = 0; i < 500; ++i) {
    auto created = Await(std::move(creates[static_cast<std::size_t>(i)]));
    EXPECT_EQ(created->path, fmt::format("{}/n{:010}", root, i));
  }
  EXPECT_EQ(Await(std::move(read))->names.size(), 500u);
  EXPECT_EQ(client->counters().writes, 501u);
  EXPECT_EQ(client->counters().reads, 1u);
}

TEST_F(WireServerTest, OneShotWatches) {
  EventLog data, missing, children;
  EXPECT_EQ(Await(client->GetAndWatch(root + "/a", data.watcher())).error(), Code::kNoNode);
  EXPECT_EQ(Await(client->ExistsAndWatch(root + "/a", missing.watcher())).error(), Code::kNoNode);
  EXPECT_TRUE(Await(client->GetChildrenAndWatch(root, children.watcher())));
  Await(client->Create(root + "/a", "", CreateMode::kPersistent));
  Await(client->Create(root + "/b", "", CreateMode::kPersistent));
  EXPECT_THAT(data.events(), ElementsAre()) << "a missing znode sets no data watch";
  EXPECT_THAT(missing.events(), ElementsAre("created " + root + "/a"));
  EXPECT_THAT(children.events(), ElementsAre("children " + root)) << "once only";

  Await(client->GetAndWatch(root + "/a", data.watcher()));
  Await(client->Set(root + "/a", "x", -1));
  Await(client->Set(root + "/a", "y", -1));
  EXPECT_THAT(data.events(), ElementsAre("changed " + root + "/a"));

  EventLog exists, own_children;
  Await(client->ExistsAndWatch(root + "/a", exists.watcher()));
  Await(client->GetChildrenAndWatch(root + "/a", own_children.watcher()));
  Await(client->Delete(root + "/a", -1));
  EXPECT_THAT(exists.events(), ElementsAre("deleted " + root + "/a"));
  EXPECT_THAT(own_children.events(), ElementsAre("deleted " + root + "/a"));
}

// coordination.md 2.9: no child events, the root's own events included.
TEST_F(WireServerTest, RecursiveWatchReportsEverythingInOrder) {
  EventLog log, children;
  Subscription registration =
      Await(client->AddWatch(root + "/t", WatchMode::kPersistentRecursive, log.watcher()));
  Await(client->Create(root + "/t", "", CreateMode::kPersistent));
  Await(client->GetChildrenAndWatch(root + "/t", children.watcher()));
  Await(client->Create(root + "/t/a", "", CreateMode::kPersistent));
  Await(client->Create(root + "/t/a/b", "", CreateMode::kPersistent));
  Await(client->Set(root + "/t/a/b", "1", -1));
  Await(client->Set(root + "/t/a/b", "2", -1));
  Await(client->Delete(root + "/t/a/b", -1));
  Await(client->Create(root + "/other", "", CreateMode::kPersistent));
  EXPECT_THAT(log.events(), ElementsAre("created " + root + "/t", "created " + root + "/t/a",
                                        "created " + root + "/t/a/b", "changed " + root + "/t/a/b",
                                        "changed " + root + "/t/a/b", "deleted " + root + "/t/a/b"));
  EXPECT_THAT(children.events(), ElementsAre("children " + root + "/t"));
  registration.Reset();
  Await(client->Set(root + "/t/a", "x", -1));
  EXPECT_EQ(log.events().size(), 6u) << "a destroyed registration is not called";
}

TEST_F(WireServerTest, PersistentWatchCoversOneZnodeAndItsChildren) {
  EventLog log;
  Subscription registration = Await(client->AddWatch(root, WatchMode::kPersistent, log.watcher()));
  Await(client->Set(root, "x", -1));
  Await(client->Create(root + "/a", "", CreateMode::kPersistent));
  Await(client->Set(root + "/a", "x", -1));
  Await(client->Set(root, "y", -1));
  EXPECT_THAT(log.events(), ElementsAre("changed " + root, "children " + root, "changed " + root));
}

// coordination.17.40
TEST_F(WireServerTest, ChrootIsAddedAndStripped) {
  WireOptions options = OptionsFor(server->address());
  options.chroot = root + "/jail/";
  TestClient jailed(*this, options);
  EventLog log, once;
  EXPECT_EQ(Await(jailed->Exists("/")).error(), Code::kNoNode);
  Await(client->Create(root + "/jail", "j", CreateMode::kPersistent));
  EXPECT_EQ(Await(jailed->Get("/"))->data, "j");
  Subscription registration = Await(jailed->AddWatch("/", WatchMode::kPersistentRecursive, log.watcher()));
  Await(jailed->GetChildrenAndWatch("/", once.watcher()));
  EXPECT_EQ(Await(jailed->Create("/a", "", CreateMode::kPersistent))->path, "/a");
  EXPECT_EQ(Await(jailed->Create("/", "", CreateMode::kPersistentSequential))->path, "/0000000001");
  std::vector<Op> ops;
  ops.push_back(CreateOp{"/m", "", CreateMode::kPersistent});
  ops.push_back(SetOp{"/", "root", -1});
  EXPECT_EQ(Await(jailed->Multi(ops)).results[0].path, "/m");
  EXPECT_EQ(Await(client->Get(root + "/jail"))->data, "root");
  EXPECT_THAT(Await(client->GetChildren(root + "/jail"))->names,
              UnorderedElementsAre("a", "m", "0000000001"));
  EXPECT_THAT(log.events(), ElementsAre("created /a", "created /0000000001", "created /m", "changed /"));
  EXPECT_THAT(once.events(), ElementsAre("children /"));
}

// A chroot that does not exist appears with the first path below it (coordination.md 2.2).
TEST_F(WireServerTest, MissingChrootIsMade) {
  WireOptions options = OptionsFor(server->address());
  options.chroot = root + "/new";
  TestClient jailed(*this, options);
  Await(EnsurePath(*jailed, "/a/b"));
  EXPECT_TRUE(Await(client->Exists(root + "/new/a/b")));
  options.chroot = root + "/without/parent";
  TestClient lost(*this, options);
  EXPECT_EQ(ErrorOf(EnsurePath(*lost, "/a")).verdict(), Verdict::kInvalid);
}

TEST_F(WireServerTest, TooLargeAndBadPathsAreRefusedBeforeSending) {
  auto writes = client->counters().writes;
  Error too_large =
      ErrorOf(client->Create(root + "/big", std::string(1'100'000, 'x'), CreateMode::kPersistent));
  EXPECT_EQ(too_large.verdict(), Verdict::kInvalid);
  EXPECT_THAT(too_large.message(), HasSubstr("jute.maxbuffer"));
  EXPECT_THAT(too_large.message(), HasSubstr("1048575"));
  for (const char* bad : {"", "a", "/a/", "//a", "/a//b", "/a/../b", "/.", "/a\tb", "/\xff"}) {
    EXPECT_EQ(ErrorOf(client->Get(bad)).verdict(), Verdict::kInvalid) << bad;
  }
  EXPECT_EQ(client->counters().writes, writes);
  std::string fits(1'048'575 - 200, 'x');
  EXPECT_TRUE(Await(client->Create(root + "/fits", fits, CreateMode::kPersistent)));
  EXPECT_EQ(Await(client->Get(root + "/fits"))->data, fits);
}

TEST_F(WireServerTest, AnswersMayBeLargerThanRequests) {
  std::string name(200, 'n');
  std::vector<Task<Result<Created>>> creates;
  for (int i = 0; i < 7000; ++i) {
    creates.push_back(client->Create(fmt::format("{}/{}{}", root, name, i), "", CreateMode::kPersistent));
  }
  for (auto& create : creates) EXPECT_TRUE(Await(std::move(create)));
  EXPECT_EQ(Await(client->GetChildren(root))->names.size(), 7000u);
}

TEST_F(WireServerTest, CancelledOperationsLeaveTheOthersAlone) {
  EventLog log;
  auto read = [](WireClient& c, std::string path, Watcher watcher) -> Task<> {
    co_await c.GetAndWatch(std::move(path), std::move(watcher));
  };
  TaskGroup group(loop, log::Logger("test"));
  server->Pause();
  for (int i = 0; i < 100; ++i) group.Spawn("read", read(*client, root, log.watcher()));
  auto last = client->Get(root);
  testing::RunReady(loop);
  Await(group.Stop());
  server->Resume();
  EXPECT_TRUE(Await(std::move(last)));
  Await(client->Set(root, "x", -1));
  EXPECT_THAT(log.events(), ElementsAre()) << "a cancelled caller sets no watch";
}

// configuration.17.14
TEST_F(WireServerTest, IPv6Loopback) {
  TestClient other(*this, OptionsFor({"[::1]", server->port()}));
  EXPECT_TRUE(Await(other->Exists(root)));
  TestClient plain(*this, OptionsFor({"::1", server->port()}));
  EXPECT_TRUE(Await(plain->Exists(root)));
}

TEST_F(WireServerTest, NamesAreResolvedAndDeadAddressesSkipped) {
  WireOptions options = OptionsFor({"localhost", server->port()});
  options.servers.push_back({"127.0.0.1", 1});
  options.servers.push_back({"no-such-host.invalid", 2181});
  TestClient other(*this, options);
  EXPECT_TRUE(Await(other->Exists(root)));
}

TEST_F(WireServerTest, DigestAuthOpensProtectedZnodes) {
  WireOptions options = OptionsFor(server->address());
  options.digest = DigestAuth{"user", "password"};
  TestClient owner(*this, options);
  EXPECT_TRUE(Await(owner->Create(root + "/x", "", CreateMode::kPersistent)));
  EXPECT_EQ(owner->state(), SessionState::kConnected);
}

TEST_F(WireServerTest, CloseFailsOutstandingAndLater) {
  TestClient other(*this, OptionsFor(server->address()));
  ASSERT_TRUE(other.WaitFor(SessionState::kConnected));
  EventLog log;
  Await(other->GetAndWatch(root, log.watcher()));
  auto outstanding = other->Get(root);
  Await(other->Close());
  EXPECT_EQ(ErrorOf(std::move(outstanding)).verdict(), Verdict::kLostSession);
  EXPECT_EQ(ErrorOf(other->Get(root)).verdict(), Verdict::kLostSession);
  EXPECT_EQ(other->state(), SessionState::kClosed);
  EXPECT_THAT(log.events(), ElementsAre("none"));
  Await(other->Close());
}

TEST_F(WireServerTest, ManyPingsKeepAnIdleSession) {
  WireOptions options = OptionsFor(server->address());
  options.session_timeout = milliseconds(400);
  TestClient idle(*this, options);
  Await(idle->Create(root + "/e", "", CreateMode::kEphemeral));
  Until([] { return false; }, milliseconds(2000));
  EXPECT_THAT(idle.states, ElementsAre(SessionState::kConnected));
  EXPECT_TRUE(Await(client->Exists(root + "/e")));
}

}  // namespace
}  // namespace nodepool::zk
