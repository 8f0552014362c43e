#include "zk/wire/wire_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <set>

#include "async/task_group.h"
#include "base/log/logging.h"
#include "zk/wire/protocol.h"
#include "zk/wire/wire_connection.h"
#include "zk/wire/wire_for_test.h"
#include "zk/wire/wire_session.h"

namespace nodepool::zk {

// WireClient against a scripted server: answers that no ZooKeeper would give.

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Write>
std::string Frame(Write write) {
  std::string body;
  JuteWriter out(body);
  write(out);
  std::string frame;
  JuteWriter(frame).Bytes(body);
  return frame;
}

std::string Welcome(std::int32_t version = 0, bool read_only = false) {
  return Frame([&](JuteWriter& out) {
    out.Int(version);
    out.Int(10'000);
    out.Long(0x1234);
    out.Bytes(std::string(16, 'p'));
    out.Bool(read_only);
  });
}

std::string Answer(std::int32_t xid, std::int32_t code, std::string_view body = "") {
  return Frame([&](JuteWriter& out) {
    out.Int(xid);
    out.Long(5);
    out.Int(code);
    out.Raw(body);
  });
}

// Takes connections one after the other; each sends the replies of the script, one
// for each frame that it gets, and stays open until the client leaves or, unless
// the server is silent, closes its session.
class ScriptedServer {
 public:
  ScriptedServer(Loop& loop, std::vector<std::string> replies, bool is_silent = false)
      : acceptor_(loop.context(), tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        replies_(std::move(replies)),
        is_silent_(is_silent),
        group_(loop, log::Logger("test.server")) {
    group_.Spawn("accept", Accept());
  }

  WireOptions Options() const {
    WireOptions options;
    options.servers = {{"127.0.0.1", acceptor_.local_endpoint().port()}};
    return options;
  }
  Task<> Stop() { return group_.Stop(); }
  int connections() const { return connections_; }

 private:
  Task<> Accept() {
    while (true) {
      tcp::socket socket = co_await acceptor_.async_accept(asio::use_awaitable);
      ++connections_;
      group_.Spawn("serve", Serve(std::move(socket)));
    }
  }

  Task<> Serve(tcp::socket socket) {
    try {
      std::size_t next = 0;
      while (true) {
        std::string frame(4, '\0');
        co_await asio::async_read(socket, asio::buffer(frame), asio::use_awaitable);
        frame.resize(static_cast<std::size_t>(JuteReader(frame).Int()));
        co_await asio::async_read(socket, asio::buffer(frame), asio::use_awaitable);
        if (!is_silent_ && IsClose(frame)) co_return;
        if (next == replies_.size()) continue;
        co_await asio::async_write(socket, asio::buffer(replies_[next]), asio::use_awaitable);
        ++next;
      }
    } catch (const boost::system::system_error&) {
    }
  }

  static bool IsClose(const std::string& frame) {
    JuteReader in(frame);
    in.Int();
    return in.Int() == -11;
  }

  tcp::acceptor acceptor_;
  std::vector<std::string> replies_;
  bool is_silent_;
  TaskGroup group_;
  int connections_ = 0;
};

class WireClientTest : public ::testing::Test, public RealTime {
 protected:
  void Start(std::vector<std::string> replies) {
    server.emplace(loop, std::move(replies));
    client.emplace(*this, server->Options());
  }
  void TearDown() override {
    client.reset();
    if (server) Await(server->Stop());
  }
  // The client never connects and says why.
  void ExpectRefusal(const std::string& why) {
    EXPECT_TRUE(Until([&] { return capture.Count(why) > 0; })) << why;
    EXPECT_EQ((*client)->state(), SessionState::kConnecting);
  }

  std::vector<std::string> TaskNames() {
    std::vector<std::string> names;
    for (const TaskInfo& task : loop.tasks().tasks()) names.push_back(task.name);
    return names;
  }

  log::Capture capture;
  std::optional<ScriptedServer> server;
  std::optional<TestClient> client;
};

TEST(RealTimeTest, AnErrorThatIsNotThrownFailsTheTest) {
  static RealTime time;
  EXPECT_NONFATAL_FAILURE(time.ErrorOf(time.loop.SleepFor(Duration(0))), "nothing was thrown");
}

TEST_F(WireClientTest, ServerThatIsNotZooKeeper) {
  Start({"HTTP/1.1 400 Bad Request\r\n\r\n"});
  ExpectRefusal("is it a ZooKeeper port?");
}

TEST_F(WireClientTest, UnknownProtocolVersion) {
  Start({Welcome(1)});
  ExpectRefusal("unknown protocol version 1");
}

TEST_F(WireClientTest, ReadOnlyServer) {
  Start({Welcome(0, true)});
  ExpectRefusal("read-only");
}

TEST_F(WireClientTest, ServerThatDoesNotAnswerIsAbandoned) {
  server.emplace(loop, std::vector<std::string>{});
  WireOptions options = server->Options();
  options.connect_timeout = milliseconds(50);
  client.emplace(*this, options);
  ExpectRefusal("connecting timed out");
  EXPECT_TRUE(Until([&] { return server->connections() > 2; })) << "and tried again";
}

TEST_F(WireClientTest, AnswerToAnotherRequestDropsTheConnection) {
  Start({Welcome(), Answer(99, 0)});
  Error error = ErrorOf((*client)->Get("/a"));
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_THAT(error.message(), HasSubstr("number 99, expected 1"));
  EXPECT_TRUE(Until([&] { return server->connections() > 1; }));
  EXPECT_EQ(capture.Count("Lost the connection"), 1);
}

TEST_F(WireClientTest, MalformedAnswerFailsTheOperationAndDropsTheConnection) {
  Start({Welcome(), Answer(1, 0, "short")});
  auto read = (*client)->Get("/a");
  auto later = (*client)->Get("/b");
  EXPECT_THAT(ErrorOf(std::move(read)).message(), HasSubstr("malformed record"));
  EXPECT_EQ(ErrorOf(std::move(later)).verdict(), Verdict::kRetry);
}

TEST_F(WireClientTest, AFrameThatIsTooLongEndsTheConnection) {
  Start({Welcome(), std::string("\x7f\xff\xff\xff", 4)});
  EXPECT_THAT(ErrorOf((*client)->Get("/a")).message(), HasSubstr("malformed frame"));
}

TEST_F(WireClientTest, FaultsOfTheServerBecomeErrors) {
  Start({Welcome(), Answer(1, -102), Answer(2, -7), Answer(3, -101)});
  Error no_auth = ErrorOf((*client)->Get("/secret"));
  EXPECT_EQ(no_auth.verdict(), Verdict::kFail);
  EXPECT_THAT(no_auth.message(), HasSubstr("get /secret: not authorized"));
  EXPECT_EQ(ErrorOf((*client)->Get("/slow")).verdict(), Verdict::kRetry);
  EXPECT_EQ(Await((*client)->Get("/none")).error(), Code::kNoNode);
}

TEST_F(WireClientTest, RefusedCredentialsAreFinalAndNotLogged) {
  server.emplace(loop, std::vector<std::string>{Welcome(), Answer(-4, -115)});
  WireOptions options = server->Options();
  options.digest = DigestAuth{"user", "hush"};
  client.emplace(*this, options);
  ASSERT_TRUE(client->WaitFor(SessionState::kClosed));
  EXPECT_THAT(ErrorOf((*client)->Get("/a")).message(), HasSubstr("credentials"));
  EXPECT_EQ(ErrorOf((*client)->Get("/a")).verdict(), Verdict::kLostSession);
  EXPECT_EQ(capture.Count("credentials"), 1);
  EXPECT_EQ(capture.Count("hush"), 0);
  EXPECT_EQ(server->connections(), 1);
}

TEST_F(WireClientTest, WaitingOperationsAreBounded) {
  WireOptions options;
  options.servers = {{"127.0.0.1", 1}};
  client.emplace(*this, options);
  std::vector<Task<Result<Stat>>> waiting;
  for (int i = 0; i < 100'000; ++i) waiting.push_back((*client)->Exists("/a"));
  Error error = ErrorOf((*client)->Exists("/a"));
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_THAT(error.message(), HasSubstr("100000 operations wait"));
  Await((*client)->Close());
  EXPECT_EQ(ErrorOf(std::move(waiting.back())).verdict(), Verdict::kLostSession);
}

TEST_F(WireClientTest, CloseDoesNotWaitForAConnection) {
  server.emplace(loop, std::vector<std::string>{});
  WireOptions options = server->Options();
  options.connect_timeout = std::chrono::hours(1);
  client.emplace(*this, options);
  ASSERT_TRUE(Until([&] { return server->connections() == 1; }));
  EXPECT_THAT(TaskNames(), Contains("ZooKeeper connection"));
  Await((*client)->Close());
  EXPECT_THAT(TaskNames(), Each(AnyOf("accept", "serve"))) << "the server's; the client's has ended";
}

TEST_F(WireClientTest, CloseDoesNotWaitForEverForASilentServer) {
  server.emplace(loop, std::vector<std::string>{Welcome()}, true);
  client.emplace(*this, server->Options());
  ASSERT_TRUE(client->WaitFor(SessionState::kConnected));
  Await((*client)->Close());
  EXPECT_EQ((*client)->state(), SessionState::kClosed);
  EXPECT_THAT(TaskNames(), Each(AnyOf("accept", "serve")));
}

TEST_F(WireClientTest, DestructionWithoutCloseFailsWhatIsOutstanding) {
  Start({Welcome()});
  ASSERT_TRUE(client->WaitFor(SessionState::kConnected));
  auto bare = std::make_unique<WireClient>(loop, random, server->Options());
  ASSERT_TRUE(Until([&] { return bare->state() == SessionState::kConnected; }));
  auto outstanding = bare->Get("/a");
  EventLog log;
  auto watched = bare->GetAndWatch("/a", log.watcher());
  Subscription registration = bare->OnSession([](SessionState) { ADD_FAILURE() << "called after the end"; });
  bare.reset();
  EXPECT_EQ(ErrorOf(std::move(outstanding)).verdict(), Verdict::kLostSession);
  EXPECT_EQ(ErrorOf(std::move(watched)).verdict(), Verdict::kLostSession);
  EXPECT_THAT(log.events(), ElementsAre());
}

TEST_F(WireClientTest, ResultsAndEventsKeepTheOrderOfTheWire) {
  std::string stat(68, '\0');
  std::string event = Frame([](JuteWriter& out) {
    out.Int(-1);
    out.Long(77);
    out.Int(0);
    out.Int(3);
    out.Int(3);
    out.String("/a");
  });
  Start({Welcome(), Answer(1, 0, stat) + event + Answer(2, 0, stat)});
  std::vector<std::string> order;
  auto first = [](WireClient& c, std::vector<std::string>& o) -> Task<> {
    co_await c.ExistsAndWatch("/a",
                              [&o](const WatchEvent& e) { o.push_back(fmt::format("event {}", e.zxid)); });
    o.push_back("first");
  };
  auto second = [](WireClient& c, std::vector<std::string>& o) -> Task<> {
    co_await c.Exists("/a");
    o.push_back("second");
  };
  TaskGroup group(loop, log::Logger("test"));
  group.Spawn("first", first(**client, order));
  group.Spawn("second", second(**client, order));
  Await(group.Join());
  EXPECT_THAT(order, ElementsAre("first", "event 77", "second"));
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WireHostsTest : public ::testing::Test, public RealTime {
 protected:
  std::vector<std::string> Resolve(std::vector<HostPort> servers, Random& dice) {
    std::vector<std::string> names;
    problems.clear();
    auto endpoints = Await(ResolveServers(loop, dice, std::move(servers), problems));
    for (const auto& endpoint : endpoints) {
      names.push_back(fmt::format("{} {}", endpoint.address().to_string(), endpoint.port()));
    }
    return names;
  }

  std::vector<std::string> problems;
};

TEST_F(WireHostsTest, LiteralsWithAndWithoutBracketsOnce) {
  SeededRandom dice(1);
  EXPECT_THAT(Resolve({{"::1", 2181}, {"[::1]", 2181}}, dice), ElementsAre("::1 2181"));
  EXPECT_THAT(Resolve({{"10.0.0.1", 2281}}, dice), ElementsAre("10.0.0.1 2281"));
  EXPECT_TRUE(problems.empty());
}

TEST_F(WireHostsTest, UnknownNamesAreReportedAndLeftOut) {
  SeededRandom dice(1);
  EXPECT_THAT(Resolve({{"no-such-host.invalid", 1}, {"127.0.0.1", 2}}, dice), ElementsAre("127.0.0.1 2"));
  EXPECT_THAT(problems, ElementsAre(HasSubstr("no-such-host.invalid: ")));
}

TEST_F(WireHostsTest, EveryServerMayComeFirst) {
  std::set<std::string> first;
  SeededRandom dice(1);
  for (int i = 0; i < 50; ++i) {
    first.insert(Resolve({{"127.0.0.1", 1}, {"127.0.0.1", 2}, {"127.0.0.1", 3}}, dice).front());
  }
  EXPECT_EQ(first.size(), 3u);
}

using ::testing::UnorderedElementsAre;
using Kind = WatchTable::OneShotKind;

class WireWatchesTest : public ::testing::Test {
 protected:
  void Dispatch(EventType type, std::string path) {
    WatchEvent event;
    event.type = type;
    event.path = std::move(path);
    table->Dispatch(event);
  }

  std::shared_ptr<WatchTable> table = std::make_shared<WatchTable>();
  EventLog log;
};

TEST_F(WireWatchesTest, OneShotsByKindOfEvent) {
  auto arm = [&] {
    table->AddOneShot(Kind::kData, "/a", log.watcher());
    table->AddOneShot(Kind::kExist, "/a", log.watcher());
    table->AddOneShot(Kind::kChild, "/a", log.watcher());
  };
  arm();
  Dispatch(EventType::kDataChanged, "/b");
  EXPECT_THAT(log.events(), ElementsAre());
  Dispatch(EventType::kChildren, "/a");
  EXPECT_EQ(log.events().size(), 1u);
  Dispatch(EventType::kDataChanged, "/a");
  EXPECT_EQ(log.events().size(), 3u);
  Dispatch(EventType::kDeleted, "/a");
  EXPECT_EQ(log.events().size(), 3u) << "all are spent";
  arm();
  Dispatch(EventType::kDeleted, "/a");
  EXPECT_EQ(log.events().size(), 6u);
}

// coordination.md 2.9
TEST_F(WireWatchesTest, OneEventServesRecursiveAndOneShotWatches) {
  table->AddOneShot(Kind::kData, "/a/b/c", log.watcher());
  Subscription root = table->AddLasting(WatchMode::kPersistentRecursive, "/", log.watcher());
  Subscription a = table->AddLasting(WatchMode::kPersistentRecursive, "/a", log.watcher());
  Subscription b = table->AddLasting(WatchMode::kPersistentRecursive, "/a/b", log.watcher());
  Subscription like_b = table->AddLasting(WatchMode::kPersistentRecursive, "/a/bb", log.watcher());
  Subscription plain = table->AddLasting(WatchMode::kPersistent, "/a/b", log.watcher());
  Dispatch(EventType::kDataChanged, "/a/b/c");
  EXPECT_EQ(log.events().size(), 4u);
  Dispatch(EventType::kDataChanged, "/a/b/c");
  EXPECT_EQ(log.events().size(), 7u);
  Dispatch(EventType::kChildren, "/a/b");
  EXPECT_EQ(log.events().size(), 8u) << "child events are for the plain one";
  Dispatch(EventType::kCreated, "/");
  EXPECT_EQ(log.events().size(), 9u);
}

TEST_F(WireWatchesTest, WatchersMayEndSubscriptionsWhileTheyAreCalled) {
  Subscription first, second;
  int calls = 0;
  first = table->AddLasting(WatchMode::kPersistent, "/a", [&](const WatchEvent&) {
    ++calls;
    first.Reset();
    second.Reset();
    table->AddOneShot(Kind::kData, "/a", [&](const WatchEvent&) { ++calls; });
  });
  second = table->AddLasting(WatchMode::kPersistent, "/a", [&](const WatchEvent&) { calls += 100; });
  Dispatch(EventType::kDataChanged, "/a");
  EXPECT_EQ(calls, 1);
  Dispatch(EventType::kDataChanged, "/a");
  EXPECT_EQ(calls, 2);
}

TEST_F(WireWatchesTest, LostSessionSpendsOneShotsOnly) {
  table->AddOneShot(Kind::kData, "/a", log.watcher());
  table->AddOneShot(Kind::kChild, "/b", log.watcher());
  Subscription lasting = table->AddLasting(WatchMode::kPersistentRecursive, "/c", log.watcher());
  auto paths = table->Paths();
  EXPECT_THAT(paths.data, ElementsAre("/a"));
  EXPECT_THAT(paths.child, ElementsAre("/b"));
  EXPECT_THAT(paths.recursive, ElementsAre("/c"));
  table->DropOneShots();
  EXPECT_THAT(log.events(), ElementsAre("none", "none"));
  EXPECT_TRUE(table->Paths().data.empty());
  EXPECT_THAT(table->Paths().recursive, ElementsAre("/c"));
  lasting.Reset();
  EXPECT_TRUE(table->Paths().recursive.empty());
}

TEST_F(WireWatchesTest, SubscriptionOutlivesItsTable) {
  auto watched = std::make_shared<int>();
  Watcher watcher = [watched, forward = log.watcher()](const WatchEvent& event) { forward(event); };
  Subscription registration = table->AddLasting(WatchMode::kPersistent, "/a", std::move(watcher));
  table.reset();
  registration.Reset();
  EXPECT_EQ(watched.use_count(), 1) << "nothing keeps the watcher";
  EXPECT_THAT(log.events(), ElementsAre());
}

}  // namespace

}  // namespace nodepool::zk
