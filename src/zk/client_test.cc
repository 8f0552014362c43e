#include "zk/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/run_ready.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::zk {

namespace {

using nodepool::testing::FaultyZk;
using nodepool::testing::MemoryZk;
using nodepool::testing::VirtualTime;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Fault = FaultyZk::Fault;

class ZkClientTest : public ::testing::Test {
 protected:
  template <class T>
  T Run(Task<T> task) {
    return time.Run(std::move(task));
  }
  template <class T>
  Verdict VerdictOfRun(Task<T> task) {
    try {
      Run(std::move(task));
    } catch (...) {
      return VerdictOf(std::current_exception());
    }
    ADD_FAILURE() << "no error";
    return Verdict::kFail;
  }
  void Make(std::string path, std::string data = "") {
    ASSERT_TRUE(zk.tree().Create(CreateOp{std::move(path), std::move(data)}, 0, time.loop().Now()));
  }
  Watcher Record(std::string name) {
    return [this, name](const WatchEvent& event) {
      seen.push_back(fmt::format("{} {} {}", name, static_cast<int>(event.type), event.path));
    };
  }
  std::vector<std::string> TakeSeen() {
    testing::RunReady(time.loop());
    return std::exchange(seen, {});
  }

  VirtualTime time;
  MemoryZk zk{time.loop()};
  std::unique_ptr<Client> client = zk.Connect();
  std::unique_ptr<Client> other = zk.Connect();
  FaultyZk faulty{*client};
  std::vector<std::string> seen;
};

TEST_F(ZkClientTest, PathParts) {
  EXPECT_EQ(ParentPath("/a/b"), "/a");
  EXPECT_EQ(ParentPath("/a"), "/");
  EXPECT_EQ(ParentPath("/a/b/"), "/a/b");
  EXPECT_EQ(BaseName("/a/b"), "b");
  EXPECT_EQ(BaseName("/a/"), "");
}

// coordination.md 3.4: these operations and no others.
TEST_F(ZkClientTest, EnsurePathReadsUpwardsThenCreatesDownwards) {
  Make("/a");
  Run(EnsurePath(faulty, "/a/b/c"));
  std::vector<std::string> calls;
  for (const auto& call : faulty.calls()) calls.push_back(call.name + " " + call.path);
  EXPECT_THAT(calls,
              ElementsAre("Exists /a/b/c", "Exists /a/b", "Exists /a", "Create /a/b", "Create /a/b/c"));
  EXPECT_TRUE(zk.tree().Exists("/a/b/c"));
  faulty.ClearCalls();
  Run(EnsurePath(faulty, "/a/b/c"));
  EXPECT_EQ(faulty.calls().size(), 1u);
}

TEST_F(ZkClientTest, CreateWithParentsTriesFirst) {
  auto created = Run(CreateWithParents(faulty, "/a/b/", "x", CreateMode::kPersistentSequential));
  EXPECT_EQ(created->path, "/a/b/0000000000");
  EXPECT_EQ(faulty.calls().front().name, "Create");
  faulty.ClearCalls();
  Run(CreateWithParents(faulty, "/a/b/", "x", CreateMode::kPersistentSequential));
  EXPECT_EQ(faulty.calls().size(), 1u);
}

TEST_F(ZkClientTest, DeleteRecursiveDeletesAllBelow) {
  for (const char* path : {"/a", "/a/b", "/a/b/c", "/a/d", "/ab"}) Make(path);
  EXPECT_TRUE(Run(DeleteRecursive(*client, "/a")));
  EXPECT_FALSE(zk.tree().Exists("/a"));
  EXPECT_TRUE(zk.tree().Exists("/ab"));
  EXPECT_TRUE(Run(DeleteRecursive(*client, "/a"))) << "a missing one is success";
}

TEST_F(ZkClientTest, AnswersComeInTheOrderOfTheCalls) {
  zk.SetLatency(std::chrono::milliseconds(10));
  Task<Result<Created>> create = client->Create("/a", "1", CreateMode::kPersistent);
  Task<Result<Stat>> set = client->Set("/a", "2", 0);
  Task<Result<NodeData>> get = client->Get("/a");
  EXPECT_EQ(Run(std::move(get))->data, "2");
  EXPECT_TRUE(Run(std::move(create)));
  EXPECT_EQ(Run(std::move(set))->version, 1);
  EXPECT_EQ(zk.counters(*client).writes, 2u);
  EXPECT_EQ(zk.counters(*client).reads, 1u);
}

TEST_F(ZkClientTest, OrdinaryAnswersAreValuesAllOthersAreErrors) {
  EXPECT_EQ(Run(client->Get("/missing")).error(), Code::kNoNode);
  EXPECT_EQ(VerdictOfRun(client->Get("bad")), Verdict::kInvalid);
  EXPECT_EQ(VerdictOfRun(client->Set("/a", std::string(2'000'000, 'x'))), Verdict::kInvalid);
  EXPECT_EQ(VerdictOfRun(client->Delete("/zookeeper", -1)), Verdict::kFail);
}

TEST_F(ZkClientTest, OneShotWatchesFireOnce) {
  Make("/a");
  Run(client->GetAndWatch("/a", Record("data")));
  Run(client->ExistsAndWatch("/new", Record("exists")));
  Run(client->GetChildrenAndWatch("/a", Record("children")));
  EXPECT_EQ(Run(client->GetAndWatch("/missing", Record("none"))).error(), Code::kNoNode);
  Run(other->Set("/a", "1"));
  Run(other->Set("/a", "2"));
  Make("/new");
  Make("/a/b");
  Make("/a/c");
  Make("/missing");
  EXPECT_THAT(TakeSeen(), ElementsAre("data 3 /a", "exists 1 /new", "children 4 /a"));
}

// coordination.md 2.9: one event from the server serves every kind of watch.
TEST_F(ZkClientTest, RecursiveAndOneShotWatchesAreEachNotifiedOnce) {
  Make("/a");
  Make("/a/b");
  Subscription recursive = Run(client->AddWatch("/a", WatchMode::kPersistentRecursive, Record("tree")));
  Run(client->GetAndWatch("/a/b", Record("data")));
  Run(other->Set("/a/b", "1"));
  Run(other->Create("/a/b/c", "", CreateMode::kPersistent));
  EXPECT_THAT(TakeSeen(), ElementsAre("data 3 /a/b", "tree 3 /a/b", "tree 1 /a/b/c"));
  recursive.Reset();
  Run(other->Set("/a/b", "2"));
  EXPECT_THAT(TakeSeen(), IsEmpty());
}

Task<std::string> ReadAfterEvent(Client& client, std::vector<std::string>& seen) {
  Result<NodeData> node = co_await client.Get("/a");
  co_return node->data + " after " + std::to_string(seen.size());
}

TEST_F(ZkClientTest, AWatchEventComesBeforeTheNewData) {
  Make("/a");
  Run(client->GetAndWatch("/a", Record("data")));
  zk.SetLatency(std::chrono::milliseconds(10));
  Task<Result<Stat>> set = other->Set("/a", "new");
  Task<std::string> read = ReadAfterEvent(*client, seen);
  EXPECT_EQ(Run(std::move(read)), "new after 1");
  EXPECT_TRUE(Run(std::move(set)));
}

TEST_F(ZkClientTest, ABrokenConnectionFailsWhatIsUnderWay) {
  testing::RunReady(time.loop());
  for (auto under_way : {MemoryZk::UnderWay::kNotDone, MemoryZk::UnderWay::kDone}) {
    bool is_done = under_way == MemoryZk::UnderWay::kDone;
    zk.SetLatency(std::chrono::milliseconds(10));
    Task<Result<Created>> create = client->Create("/a", "", CreateMode::kPersistent);
    zk.Disconnect(*client, under_way);
    EXPECT_EQ(client->state(), SessionState::kSuspended);
    EXPECT_EQ(VerdictOfRun(std::move(create)), Verdict::kRetry);
    EXPECT_EQ(zk.tree().Exists("/a").has_value(), is_done);
    Task<Result<Stat>> later = client->Exists("/a");
    zk.Reconnect(*client);
    EXPECT_EQ(Run(std::move(later)).has_value(), is_done) << "waits for the connection";
  }
}

TEST_F(ZkClientTest, WatchesSurviveAReconnectionAndReportWhatWasMissed) {
  Make("/a");
  Run(client->GetAndWatch("/a", Record("data")));
  Run(client->ExistsAndWatch("/new", Record("exists")));
  Subscription recursive = Run(client->AddWatch("/", WatchMode::kPersistentRecursive, Record("tree")));
  Session before = client->session();
  zk.Disconnect(*client);
  Run(other->Set("/a", "1"));
  zk.Reconnect(*client);
  EXPECT_THAT(TakeSeen(), ElementsAre("data 3 /a", "tree 3 /a"));
  EXPECT_EQ(client->session(), before);
  Make("/new");
  EXPECT_THAT(TakeSeen(), ElementsAre("exists 1 /new", "tree 1 /new"));
}

TEST_F(ZkClientTest, AnExpiredSessionLosesItsEphemeralsAndANewOneBegins) {
  std::vector<SessionState> states;
  Subscription listener = client->OnSession([&](SessionState state) { states.push_back(state); });
  Make("/a");
  Run(client->Create("/e", "", CreateMode::kEphemeral));
  Run(client->GetAndWatch("/a", Record("data")));
  Session before = client->session();
  zk.ExpireSession(*client);
  EXPECT_FALSE(zk.tree().Exists("/e"));
  EXPECT_EQ(VerdictOfRun(client->Get("/a")), Verdict::kLostSession);
  EXPECT_THAT(TakeSeen(), ElementsAre("data -1 "));
  EXPECT_TRUE(Run(client->Exists("/a")));
  EXPECT_EQ(client->session().generation, before.generation + 1);
  EXPECT_NE(client->session().id, before.id);
  EXPECT_THAT(states, ElementsAre(SessionState::kConnected, SessionState::kLost, SessionState::kConnecting,
                                  SessionState::kConnected));
}

TEST_F(ZkClientTest, ASessionOutlivesItsConnectionForItsTimeoutOnly) {
  Run(client->Create("/e", "", CreateMode::kEphemeral));
  Run(other->Create("/o", "", CreateMode::kEphemeral));
  zk.Disconnect(*client);
  other.reset();  // a crash
  time.Advance(std::chrono::seconds(9));
  EXPECT_TRUE(zk.tree().Exists("/e"));
  EXPECT_TRUE(zk.tree().Exists("/o"));
  time.Advance(std::chrono::seconds(2));
  EXPECT_FALSE(zk.tree().Exists("/e"));
  EXPECT_FALSE(zk.tree().Exists("/o"));
  EXPECT_EQ(client->state(), SessionState::kSuspended) << "it cannot know";
  zk.Reconnect(*client);
  testing::RunReady(time.loop());
  EXPECT_TRUE(Run(client->Exists("/"))) << "in a new session";
  EXPECT_EQ(client->session().generation, 2u);
}

TEST_F(ZkClientTest, CloseEndsTheSessionAtOnce) {
  Run(client->Create("/e", "", CreateMode::kEphemeral));
  Run(client->Close());
  EXPECT_FALSE(zk.tree().Exists("/e"));
  EXPECT_EQ(client->state(), SessionState::kClosed);
  EXPECT_EQ(VerdictOfRun(client->Exists("/")), Verdict::kLostSession);
}

TEST_F(ZkClientTest, FaultsComeBeforeOrAfterTheEffect) {
  faulty.FailNth(1, Fault::kBefore);
  EXPECT_TRUE(Run(faulty.Create("/a", "", CreateMode::kPersistent)));
  EXPECT_EQ(VerdictOfRun(faulty.Create("/b", "", CreateMode::kPersistent)), Verdict::kRetry);
  EXPECT_FALSE(zk.tree().Exists("/b"));
  EXPECT_TRUE(Run(faulty.Create("/b", "", CreateMode::kPersistent)));
  faulty.SetError(Error(Verdict::kFail, "broken"));
  faulty.FailNth(0, Fault::kAfter);
  EXPECT_EQ(VerdictOfRun(faulty.Delete("/b", -1)), Verdict::kFail);
  EXPECT_FALSE(zk.tree().Exists("/b"));
  EXPECT_EQ(faulty.CountWrites(), 4u);
}

}  // namespace

}  // namespace nodepool::zk
