#include "zk/server/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <semaphore>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/testing/manual_clock.h"
#include "zk/server/request.h"
#include "zk/server/server.h"
#include "zk/wire/wire_for_test.h"

namespace nodepool::zk::server {

namespace {

using std::chrono::milliseconds;

class TurnTest : public ::testing::Test {
 protected:
  testing::VirtualTime time;
  Loop& loop = time.loop();
  Gate gate{1};
};

TEST_F(TurnTest, OneShortRequestNeedsNone) {
  Turn turn(loop, gate);
  EXPECT_TRUE(turn.Covers(false));
  EXPECT_FALSE(turn.Covers(false));
}

TEST_F(TurnTest, ALongRequestNeedsOne) {
  Turn turn(loop, gate);
  EXPECT_FALSE(turn.Covers(true));
}

TEST_F(TurnTest, ItEndsAfterSomeMilliseconds) {
  Turn turn(loop, gate);
  time.Run(turn.Begin());
  EXPECT_TRUE(turn.Covers(true));
  time.Advance(milliseconds(4));
  EXPECT_TRUE(turn.Covers(true));
  time.Advance(milliseconds(1));
  EXPECT_FALSE(turn.Covers(true));
}

Task<> BeginAndNote(Turn& turn, std::string name, std::string& order) {
  co_await turn.Begin();
  order += name;
  turn.End();
}

TEST_F(TurnTest, OneClientAtATimeHasATurn) {
  Turn first(loop, gate), second(loop, gate), third(loop, gate);
  std::string order;
  time.Run(first.Begin());
  TaskGroup tasks(loop, log::Logger("test"));
  tasks.Spawn("second", BeginAndNote(second, "2", order));
  tasks.Spawn("third", BeginAndNote(third, "3", order));
  time.Advance(milliseconds(1));
  EXPECT_EQ(order, "");
  first.End();
  EXPECT_FALSE(first.Covers(true));
  time.Advance(milliseconds(0));
  EXPECT_EQ(order, "23");
  time.Run(tasks.Join());
}

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A process that can be stopped: time goes on, timers run late.
class StoppableClock : public testing::ManualClock {
 public:
  SteadyTime SteadyNow() const override { return testing::ManualClock::SteadyNow() + stopped_; }
  TimerId CallAt(SteadyTime when, std::move_only_function<void()> callback) override {
    return testing::ManualClock::CallAt(when - stopped_, std::move(callback));
  }
  void Run(Duration duration) { AdvanceTo(testing::ManualClock::SteadyNow() + duration); }
  void Stop(Duration duration) { stopped_ += duration; }

 private:
  Duration stopped_{0};
};

class SessionClockTest : public ::testing::Test {
 protected:
  StoppableClock clock_;
  Loop loop_{clock_};
  std::vector<std::int64_t> expired_;
  SessionClock sessions_{loop_, [this](std::int64_t session) { expired_.push_back(session); }};
};

TEST_F(SessionClockTest, ExpiresOneTimeoutAfterTheLastMessage) {
  sessions_.Start(1, seconds(4));
  sessions_.Start(2, seconds(10));
  sessions_.Start(3, seconds(1));
  sessions_.Stop(3);
  clock_.Run(seconds(3));
  sessions_.Heard(1);
  clock_.Run(std::chrono::milliseconds(3999));
  EXPECT_THAT(expired_, IsEmpty());
  clock_.Run(std::chrono::milliseconds(1));
  EXPECT_THAT(expired_, ElementsAre(1));
  clock_.Run(seconds(3));
  EXPECT_THAT(expired_, ElementsAre(1, 2));
}

TEST_F(SessionClockTest, AfterASuspensionEachSessionHasItsTimeoutAnew) {
  sessions_.Start(1, seconds(10));
  sessions_.Start(2, seconds(10));
  clock_.Stop(minutes(10));
  clock_.Run(seconds(10));
  EXPECT_THAT(expired_, IsEmpty());
  clock_.Run(seconds(9));
  sessions_.Heard(2);
  clock_.Run(seconds(2));
  EXPECT_THAT(expired_, ElementsAre(1));
}

// A server whose clients over plain TCP have to show a secret.

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kClientSecret = "a secret of this test";

class AdmissionTest : public ::testing::Test, protected RealTime {
 protected:
  AdmissionTest() {
    ServerOptions options;
    options.port = 0;
    options.own_password = own_password_;
    options.client_secret = kClientSecret;
    options.connections = 2;
    server_.emplace(loop, disk_, options);
    Await(server_->Start());
  }
  ~AdmissionTest() override { Await(server_->Stop()); }

  WireOptions Plain() const {
    WireOptions options;
    options.servers = {{"127.0.0.1", server_->port()}};
    return options;
  }
  WireOptions With(std::string secret) const {
    WireOptions options = Plain();
    options.digest = DigestAuth{std::string(kClientUser), std::move(secret)};
    return options;
  }
  // What the server answers to the bytes until it hangs up.
  std::string AnswerTo(const std::string& bytes) {
    boost::asio::ip::tcp::socket socket(loop.context());
    socket.connect({boost::asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(server_->port())});
    boost::asio::write(socket, boost::asio::buffer(bytes));
    std::string answer;
    bool has_ended = false;
    boost::asio::async_read(socket, boost::asio::dynamic_buffer(answer),
                            [&](boost::system::error_code, std::size_t) { has_ended = true; });
    EXPECT_TRUE(Until([&] { return has_ended; }));
    return answer;
  }
  std::string Monitored(const std::string& name) {
    server_->SetClientSecret("");
    std::string all = AnswerTo("mntr");
    server_->SetClientSecret(kClientSecret);
    std::size_t begin = all.find(name + "\t");
    return all.substr(begin, all.find('\n', begin) - begin);
  }

  BlockingPool disk_{1};
  const std::string own_password_ = NewPassword();
  std::optional<Server> server_;
};

TEST_F(AdmissionTest, WhoKnowsTheSecretIsServed) {
  TestClient client(*this, With(kClientSecret));
  EXPECT_TRUE(Await(client->Create("/a", "data", CreateMode::kPersistent)));
  EXPECT_EQ(Await(client->Get("/a"))->data, "data");
}

TEST_F(AdmissionTest, TheServersOwnProcessIsServed) {
  WireOptions own = Plain();
  own.opening_password = own_password_;
  TestClient client(*this, own);
  EXPECT_TRUE(Await(client->Create("/a", "", CreateMode::kPersistent)));
}

TEST_F(AdmissionTest, AWrongSecretEndsTheClient) {
  for (const char* secret : {"another secret, as long", ""}) {
    TestClient client(*this, With(secret));
    EXPECT_TRUE(client.WaitFor(SessionState::kClosed)) << secret;
  }
}

std::string FramesOf(std::initializer_list<std::function<void(JuteWriter&)>> bodies) {
  std::string frames;
  for (const auto& body : bodies) AppendFrame(frames, body);
  return frames;
}

void AskForSession(JuteWriter& out) {
  protocol::ConnectRequest request;
  request.timeout_ms = 10'000;
  request.password = std::string(kPasswordSize, '\0');
  protocol::Write(out, request);
}

void ReadRoot(JuteWriter& out) {
  protocol::WriteHeader(out, 1, protocol::OpCode::kGetChildren2);
  out.String("/");
  out.Bool(false);
}

// A program that knows nothing of secrets gets an answer that it understands, and the next words are not
// read.
TEST_F(AdmissionTest, WithoutTheSecretNothingIsExecuted) {
  log::Capture log;
  std::string answer = AnswerTo(FramesOf({AskForSession, ReadRoot, ReadRoot}));
  std::string refusal;
  AppendFrame(refusal, [](JuteWriter& out) { WriteReplyHeader(out, {1, 0, Code::kNoAuth}); });
  EXPECT_TRUE(answer.ends_with(refusal));
  EXPECT_THAT(answer, Not(HasSubstr("zookeeper"))) << "the names of znodes";
  EXPECT_EQ(log.Count("it does not know the secret"), 1);
}

// Nothing is recorded for strangers, so they take no place of clients that know the secret.
TEST_F(AdmissionTest, StrangersHaveNoSession) {
  for (int i = 0; i < 10; ++i) AnswerTo(FramesOf({AskForSession, ReadRoot}));
  EXPECT_EQ(Monitored("zk_global_sessions"), "zk_global_sessions\t0");
  std::list<boost::asio::ip::tcp::socket> waiting;
  for (int i = 0; i < 10; ++i) {
    auto& socket = waiting.emplace_back(loop.context());
    socket.connect({boost::asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(server_->port())});
    boost::asio::write(socket, boost::asio::buffer(FramesOf({AskForSession})));
  }
  TestClient client(*this, With(kClientSecret));
  EXPECT_TRUE(Await(client->Create("/a", "", CreateMode::kPersistent)));
}

TEST_F(AdmissionTest, WordsReportNothingToStrangers) {
  EXPECT_EQ(AnswerTo("ruok"), "imok");
  for (const char* word : {"srvr", "stat", "mntr", "dump"})
    EXPECT_THAT(AnswerTo(word), HasSubstr("secret")) << word;
}

TEST_F(AdmissionTest, ASessionContinuesWithTheSecretAlone) {
  TestClient client(*this, With(kClientSecret));
  ASSERT_TRUE(Await(client->Create("/mine", "", CreateMode::kEphemeral)));
  std::int64_t session = client->session().id;
  server_->SetClientSecret("another one");
  server_->SetClientSecret(kClientSecret);
  ASSERT_TRUE(client.WaitFor(SessionState::kSuspended));
  ASSERT_TRUE(client.WaitFor(SessionState::kConnected));
  EXPECT_TRUE(Await(client->Exists("/mine")));
  EXPECT_EQ(client->session().id, session);
}

// A client may have begun before the server's first start made the secret.
TEST_F(AdmissionTest, WhatIsShownIsReadAtEachConnection) {
  std::string known;
  WireOptions options = Plain();
  options.find_digest = [&known] {
    return known.empty() ? std::nullopt : std::optional(DigestAuth{std::string(kClientUser), known});
  };
  TestClient client(*this, options);
  EXPECT_THAT(ErrorOf(client->Exists("/a")).message(), HasSubstr("not authorized"));
  known = kClientSecret;
  ASSERT_TRUE(Until([&] { return std::ranges::count(client.states, SessionState::kConnected) == 2; }));
  EXPECT_TRUE(Await(client->Create("/a", "", CreateMode::kPersistent)));
}

// As when a provider whose machines reach this host is added to a running program.
TEST_F(AdmissionTest, ClientsHaveToShowASecretThatComesLater) {
  server_->SetClientSecret("");
  TestClient knows(*this, With(kClientSecret)), knows_not(*this, Plain());
  ASSERT_TRUE(Await(knows->Create("/a", "", CreateMode::kEphemeral)));
  ASSERT_TRUE(Await(knows_not->Create("/b", "", CreateMode::kPersistent)));
  server_->SetClientSecret(kClientSecret);
  ASSERT_TRUE(knows_not.WaitFor(SessionState::kSuspended));
  EXPECT_THAT(ErrorOf(knows_not->Exists("/b")).message(), HasSubstr("not authorized"));
  EXPECT_TRUE(Await(knows->Exists("/a"))) << "its session goes on";
}

using boost::asio::ip::tcp;

class ServerThreadTest : public ::testing::Test, protected RealTime {
 protected:
  static ServerOptions OptionsFor(const tcp::acceptor& reserved) {
    ServerOptions options;
    options.port = reserved.local_endpoint().port();
    return options;
  }
  // A free port of the loopback address: nobody else gets it while this is bound and does not listen.
  tcp::acceptor Reserve() {
    tcp::acceptor acceptor(loop.context());
    acceptor.open(tcp::v4());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind({boost::asio::ip::address_v4::loopback(), 0});
    return acceptor;
  }
};

Task<> CreateNode(WireClient& client) {
  (void)co_await client.Create("/node", "data", CreateMode::kPersistent);
}

Task<> ReadNode(WireClient& client, bool& is_answered) {
  (void)co_await client.Get("/node");
  is_answered = true;
}

TEST_F(ServerThreadTest, ServesTheProcessThatItIsPartOf) {
  tcp::acceptor reserved = Reserve();
  ServerThread server(OptionsFor(reserved));
  Await(server.Start());
  WireOptions options;
  options.servers = {{"127.0.0.1", reserved.local_endpoint().port()}};
  WireClient client(loop, random, options);
  TaskGroup group(loop, log::Logger("test.server_thread"));
  Await(CreateNode(client));

  // While the server is busy this loop goes on; what it has asked is answered afterwards.
  std::binary_semaphore is_busy(0), may_go_on(0);
  boost::asio::post(server.loop().context(), [&] {
    is_busy.release();
    may_go_on.acquire();
  });
  is_busy.acquire();
  bool is_answered = false;
  group.Spawn("read", ReadNode(client, is_answered));
  Await(loop.SleepFor(std::chrono::milliseconds(20)));
  EXPECT_FALSE(is_answered);
  may_go_on.release();
  EXPECT_TRUE(Until([&] { return is_answered; }));
  RunToEnd(loop, group.Stop());
  Await(client.Close());
  Await(server.Stop());
}

TEST_F(ServerThreadTest, SaysWhyItCannotStart) {
  tcp::acceptor taken = Reserve();
  taken.listen();
  ServerThread server(OptionsFor(taken));
  EXPECT_EQ(ErrorOf(server.Start()).verdict(), Verdict::kInvalid);
  Await(server.Stop());
}

}  // namespace

}  // namespace nodepool::zk::server
