// When servers refuse a session (coordination.md 2.5), in virtual time over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/log/logging.h"
#include "zk/wire/protocol.h"
#include "zk/wire/wire_for_test.h"

namespace nodepool::zk {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr Duration kSessionTimeout = seconds(10);

// Takes connections, and decides about each by its handshake.
class Doorkeeper {
 public:
  struct Hello {
    std::int64_t last_zxid;
    std::int64_t session;
  };
  // The session that is granted; 0: the connection is closed.
  using Decide = std::function<std::int64_t(const Hello&)>;

  Doorkeeper(Loop& loop, Decide decide)
      : decide(std::move(decide)),
        acceptor_(loop.context(), tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        group_(loop, log::Logger("test.server")) {
    group_.Spawn("accept", Accept());
  }

  HostPort address() const { return {"127.0.0.1", acceptor_.local_endpoint().port()}; }
  void HangUp() {
    for (tcp::socket* socket : open_) socket->close();
  }
  Task<> Stop() { return group_.Stop(); }

  Decide decide;
  std::vector<Hello> hellos;

 private:
  Task<> Accept() {
    while (true) {
      tcp::socket socket = co_await acceptor_.async_accept(asio::use_awaitable);
      group_.Spawn("serve", Serve(std::move(socket)));
    }
  }
  Task<> Serve(tcp::socket socket) {
    open_.insert(&socket);
    try {
      co_await Converse(socket);
    } catch (const boost::system::system_error&) {
    }
    open_.erase(&socket);
  }
  Task<> Converse(tcp::socket& socket) {
    std::string hello = co_await ReadFrame(socket);
    JuteReader in(hello);
    in.Int();
    Hello seen{in.Long(), 0};
    in.Int();
    seen.session = in.Long();
    hellos.push_back(seen);
    std::int64_t session = decide(seen);
    if (session == 0) co_return;
    co_await Send(socket, Welcome(session));
    while (true) {
      std::string request = co_await ReadFrame(socket);
      std::int32_t xid = JuteReader(request).Int();
      co_await Send(socket, NoSuchZnode(xid));
    }
  }
  static Task<std::string> ReadFrame(tcp::socket& socket) {
    std::string frame(4, '\0');
    co_await asio::async_read(socket, asio::buffer(frame), asio::use_awaitable);
    frame.resize(static_cast<std::size_t>(JuteReader(frame).Int()));
    co_await asio::async_read(socket, asio::buffer(frame), asio::use_awaitable);
    co_return frame;
  }
  static Task<> Send(tcp::socket& socket, std::string body) {
    std::string frame;
    JuteWriter(frame).Bytes(body);
    co_await asio::async_write(socket, asio::buffer(frame), asio::use_awaitable);
  }
  static std::string Welcome(std::int64_t session) {
    std::string body;
    JuteWriter out(body);
    out.Int(0);
    out.Int(static_cast<std::int32_t>(std::chrono::duration_cast<milliseconds>(kSessionTimeout).count()));
    out.Long(session);
    out.Bytes(std::string(16, 'p'));
    out.Bool(false);
    return body;
  }
  static std::string NoSuchZnode(std::int32_t xid) {
    std::string body;
    JuteWriter out(body);
    out.Int(xid);
    out.Long(5000);
    out.Int(xid < 0 ? 0 : static_cast<std::int32_t>(Code::kNoNode));
    return body;
  }

  tcp::acceptor acceptor_;
  std::set<tcp::socket*> open_;
  TaskGroup group_;
};

class WireRefusalTest : public ::testing::Test {
 protected:
  WireRefusalTest() {
    WireOptions options;
    options.servers = {door.address()};
    options.session_timeout = kSessionTimeout;
    client.emplace(time.loop(), random, std::move(options));
    listener = client->OnSession([this](SessionState state) {
      states.push_back(state);
      if (state == SessionState::kLost) lost_at = time.loop().SteadyNow();
    });
    EXPECT_TRUE(Until([&] { return client->state() == SessionState::kConnected; }));
    EXPECT_EQ(time.Run(client->Get("/a")).error(), Code::kNoNode);
    states.clear();
  }
  ~WireRefusalTest() override {
    time.Run(client->Close());
    time.Run(door.Stop());
  }

  // In steps, since what comes over sockets takes no virtual time.
  template <class Predicate>
  bool Until(Predicate is_reached, Duration limit = minutes(2)) {
    SteadyTime end = time.loop().SteadyNow() + limit;
    while (!is_reached() && time.loop().SteadyNow() < end) time.Advance(milliseconds(10));
    return is_reached();
  }

  testing::VirtualTime time;
  SeededRandom random{7};
  log::Capture capture;
  Doorkeeper door{time.loop(), [](const Doorkeeper::Hello&) { return 0x1234; }};
  std::optional<WireClient> client;
  Subscription listener;
  std::vector<SessionState> states;
  SteadyTime lost_at{};
};

TEST_F(WireRefusalTest, AServerThatHasSeenLessGetsANewSessionAfterTheTimeOut) {
  door.decide = [](const Doorkeeper::Hello& hello) { return hello.last_zxid > 100 ? 0 : 0x5678; };
  SteadyTime hung_up = time.loop().SteadyNow();
  door.HangUp();
  ASSERT_TRUE(Until([&] { return client->state() == SessionState::kSuspended; }));
  Task<Result<NodeData>> waiting = client->Get("/a");
  ASSERT_TRUE(Until([&] { return client->state() == SessionState::kConnected; }));
  EXPECT_THAT(states, ElementsAre(SessionState::kSuspended, SessionState::kLost, SessionState::kConnecting,
                                  SessionState::kConnected));
  EXPECT_GE(lost_at - hung_up, kSessionTimeout) << "another server might have accepted it until then";
  EXPECT_LT(lost_at - hung_up, kSessionTimeout + seconds(8)) << "a pause between two attempts";
  EXPECT_EQ(client->session(), (Session{0x5678, 2}));
  EXPECT_EQ(capture.Count("session 0x1234 is taken up by no server"), 1);
  EXPECT_THROW(time.Run(std::move(waiting)), Error) << "it was of the former session";
  EXPECT_EQ(time.Run(client->Get("/a")).error(), Code::kNoNode);
}

TEST_F(WireRefusalTest, ServersThatRefuseEverybodyDoNotEndTheSession) {
  door.decide = [](const Doorkeeper::Hello&) { return 0; };
  door.HangUp();
  EXPECT_FALSE(Until([&] { return client->state() == SessionState::kLost; }, minutes(5)));
  door.decide = [](const Doorkeeper::Hello& hello) { return hello.session; };
  ASSERT_TRUE(Until([&] { return client->state() == SessionState::kConnected; }));
  EXPECT_THAT(states, ElementsAre(SessionState::kSuspended, SessionState::kConnected));
  EXPECT_EQ(client->session(), (Session{0x1234, 1})) << "as soon as they have a quorum again";
}

TEST_F(WireRefusalTest, AServerThatCannotBeReachedForLongIsAskedForTheSessionFirst) {
  std::vector<HostPort> nobody{{"127.0.0.1", 1}};
  client->SetServers(nobody);
  door.HangUp();
  EXPECT_FALSE(Until([&] { return client->state() == SessionState::kLost; }, minutes(5)));
  // The first refusal after that is of a server that has just begun to start.
  door.hellos.clear();
  door.decide = [this](const Doorkeeper::Hello& hello) { return door.hellos.size() < 3 ? 0 : hello.session; };
  client->SetServers({door.address()});
  ASSERT_TRUE(Until([&] { return client->state() == SessionState::kConnected; }));
  EXPECT_EQ(client->session(), (Session{0x1234, 1}));
  for (const Doorkeeper::Hello& hello : door.hellos) EXPECT_EQ(hello.session, 0x1234);
  EXPECT_THAT(states, ElementsAre(SessionState::kSuspended, SessionState::kConnected));
}

}  // namespace
}  // namespace nodepool::zk
