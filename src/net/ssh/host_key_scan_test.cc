#include "net/ssh/host_key_scan.h"

#include <gtest/gtest.h>

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>

#include "async/task_group.h"
#include "base/error.h"
#include "base/testing/test_environment.h"
#include "net/servers_for_test.h"

namespace nodepool::net {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Keys = std::vector<std::string>;

// Accepts on the loopback address and sends the same bytes to every client.
class Listener {
 public:
  Listener(Loop& loop, std::string greeting)
      : acceptor_(loop.context(), {asio::ip::address_v4::loopback(), 0}),
        greeting_(std::move(greeting)),
        group_(loop, log::Logger("test.listener")) {
    group_.Spawn("accept", Accept());
  }
  int port() const { return acceptor_.local_endpoint().port(); }
  std::size_t accepted() const { return sockets_.size(); }
  Task<> Stop() { return group_.Stop(); }

 private:
  Task<> Accept() {
    while (true) {
      sockets_.push_back(co_await acceptor_.async_accept(asio::use_awaitable));
      if (!greeting_.empty())
        co_await asio::async_write(sockets_.back(), asio::buffer(greeting_), asio::use_awaitable);
    }
  }

  tcp::acceptor acceptor_;
  std::string greeting_;
  TaskGroup group_;
  std::vector<tcp::socket> sockets_;
};

// Passes everything on to another port of this machine, with a delay, after a greeting of its own.
// Connections beyond `most` are accepted and never answered.
class SlowRelay {
 public:
  SlowRelay(Loop& loop, int to_port, Duration delay, std::size_t most = 1000, std::string greeting = "")
      : loop_(loop),
        acceptor_(loop.context(), {asio::ip::address_v4::loopback(), 0}),
        to_port_(to_port),
        delay_(delay),
        most_(most),
        greeting_(std::move(greeting)),
        group_(loop, log::Logger("test.relay")) {
    group_.Spawn("accept", Accept());
  }
  int port() const { return acceptor_.local_endpoint().port(); }
  std::size_t passed_on() const { return passed_on_; }
  std::size_t unanswered() const { return unanswered_.size(); }
  Task<> Stop() { return group_.Stop(); }

 private:
  using Socket = std::shared_ptr<tcp::socket>;

  Task<> Accept() {
    while (true) {
      auto from = std::make_shared<tcp::socket>(co_await acceptor_.async_accept(asio::use_awaitable));
      if (passed_on_ == most_) {
        unanswered_.push_back(std::move(from));
        continue;
      }
      auto to = std::make_shared<tcp::socket>(loop_.context());
      tcp::endpoint server(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(to_port_));
      boost::system::error_code refused;
      auto connected = asio::redirect_error(asio::use_awaitable, refused);
      co_await to->async_connect(server, connected);
      if (refused) continue;  // the server is not up yet; the client finds a closed connection
      ++passed_on_;
      co_await asio::async_write(*from, asio::buffer(greeting_), asio::use_awaitable);
      group_.Spawn("there", Pass(from, to));
      group_.Spawn("back", Pass(to, from));
    }
  }
  Task<> Pass(Socket from, Socket to) {
    std::array<char, 4096> buffer;
    boost::system::error_code end;
    while (!end) {
      auto received = asio::redirect_error(asio::use_awaitable, end);
      std::size_t size = co_await from->async_read_some(asio::buffer(buffer), received);
      co_await loop_.SleepFor(delay_);
      if (!end) {
        auto sent = asio::redirect_error(asio::use_awaitable, end);
        co_await asio::async_write(*to, asio::buffer(buffer, size), sent);
      }
    }
    boost::system::error_code ignored;
    to->shutdown(tcp::socket::shutdown_send, ignored);
  }

  Loop& loop_;
  tcp::acceptor acceptor_;
  int to_port_;
  Duration delay_;
  std::size_t most_;
  std::string greeting_;
  std::size_t passed_on_ = 0;
  std::vector<Socket> unanswered_;
  TaskGroup group_;
};

class HostKeyScanTest : public ::testing::Test {
 protected:
  Keys Scan(int port, bool wants_keys = true, Duration limit = seconds(20)) {
    return RunToEnd(loop, scanner.Scan("127.0.0.1", port, wants_keys, loop.SteadyNow() + limit));
  }
  void ExpectNoAnswer(int port, bool wants_keys = true) {
    try {
      Scan(port, wants_keys, milliseconds(700));
      ADD_FAILURE() << "the scan succeeded";
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kTimedOut);
      EXPECT_NE(error.message().find("127.0.0.1 on port " + std::to_string(port)), std::string::npos);
    }
  }

  Loop loop;
  BlockingPool pool{4};
  HostKeyScanner scanner{loop, pool};
};

// NS-1, F-scan, D-28: the RSA key is offered under three algorithms, returned once.
TEST_F(HostKeyScanTest, ReadsEveryKeyOnceInTheOrderOfAlgorithms) {
  SshServerForTest server({"rsa-2048", "ecdsa-256", "ecdsa-384", "ecdsa-521", "ed25519"});
  server.Start();
  EXPECT_EQ(Scan(server.port()), (Keys{server.public_key("ed25519"), server.public_key("ecdsa-256"),
                                       server.public_key("ecdsa-384"), server.public_key("ecdsa-521"),
                                       server.public_key("rsa-2048")}));
}

TEST_F(HostKeyScanTest, ReadsTheOnlyKeyOfAServer) {
  for (const char* type : {"ed25519", "rsa-3072"}) {
    SshServerForTest server({type});
    server.Start();
    EXPECT_EQ(Scan(server.port()), Keys{server.public_key(type)});
  }
}

TEST_F(HostKeyScanTest, WaitsForAServerThatStartsLate) {
  SshServerForTest server({"ed25519"});
  TaskGroup group(loop, log::Logger("test.scan"));
  struct Late {
    static Task<> Start(Loop& loop, SshServerForTest& server) {
      co_await loop.SleepFor(milliseconds(800));
      server.Start();
    }
  };
  group.Spawn("start", Late::Start(loop, server));
  EXPECT_EQ(Scan(server.port()), Keys{server.public_key("ed25519")});
  EXPECT_EQ(group.size(), 0u) << "keys before the server started";
}

TEST_F(HostKeyScanTest, SlowServerIsWaitedFor) {
  SshServerForTest server({"ed25519", "ecdsa-256"});
  server.Start();
  SlowRelay relay(loop, server.port(), milliseconds(50));
  EXPECT_EQ(Scan(relay.port()), (Keys{server.public_key("ed25519"), server.public_key("ecdsa-256")}));
  RunToEnd(loop, relay.Stop());
}

// NS-2, F-scan-timeout-connect
TEST_F(HostKeyScanTest, RefusingPortTimesOut) { ExpectNoAnswer(testing::FreePort()); }

// NS-3, F-scan-timeout-ssh
TEST_F(HostKeyScanTest, SilentServerTimesOut) {
  Listener listener(loop, "");
  ExpectNoAnswer(listener.port());
  EXPECT_GE(listener.accepted(), 1u);
  RunToEnd(loop, listener.Stop());
}

// NS-3: it sends an SSH greeting and then nothing more.
TEST_F(HostKeyScanTest, ServerThatOnlyGreetsTimesOut) {
  Listener listener(loop, "SSH-2.0-silence\r\n");
  HostKeyScanner::Options options;
  options.try_limit = seconds(1);
  HostKeyScanner scanner(loop, pool, options);
  try {
    RunToEnd(loop, scanner.Scan("127.0.0.1", listener.port(), true, loop.SteadyNow() + milliseconds(1500)));
    ADD_FAILURE() << "the scan succeeded";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kTimedOut);
  }
  EXPECT_GE(listener.accepted(), 2u) << "tried again";
  RunToEnd(loop, listener.Stop());
}

TEST_F(HostKeyScanTest, AnotherProtocolTimesOut) {
  Listener listener(loop, "HTTP/1.1 400 Bad Request\r\n\r\nSSH-1.0-old\r\n");
  ExpectNoAnswer(listener.port());
  RunToEnd(loop, listener.Stop());
}

TEST_F(HostKeyScanTest, EndlessLinesTimeOut) {
  Listener listener(loop, std::string(1 << 20, 'x'));
  ExpectNoAnswer(listener.port());
  RunToEnd(loop, listener.Stop());
}

// BB-36: other protocols only need an open port.
TEST_F(HostKeyScanTest, WithoutKeysAnOpenPortIsEnough) {
  Listener listener(loop, "");
  EXPECT_EQ(Scan(listener.port(), false), Keys{});
  RunToEnd(loop, listener.Stop());
  ExpectNoAnswer(testing::FreePort(), false);
}

TEST_F(HostKeyScanTest, UnknownNameTimesOut) {
  EXPECT_THROW(
      RunToEnd(loop, scanner.Scan("no-such-host.invalid", 22, true, loop.SteadyNow() + milliseconds(300))),
      Error);
}

Task<> ScanInto(HostKeyScanner& scanner, Loop& loop, int port, std::vector<Keys>& results) {
  results.push_back(co_await scanner.Scan("127.0.0.1", port, true, loop.SteadyNow() + seconds(20)));
}

Task<> JoinGroup(TaskGroup& group) { co_await group.Join(); }

Task<> UntilAccepted(Loop& loop, Listener& listener, std::size_t count) {
  while (listener.accepted() < count) co_await loop.SleepFor(milliseconds(10));
}

// Machines that greet and then say nothing hold up neither other machines nor the end.
TEST_F(HostKeyScanTest, MachinesThatHangOccupyNoThread) {
  Listener hanging(loop, "SSH-2.0-silence\r\n");
  SshServerForTest server({"ed25519"});
  server.Start();
  BlockingPool one_thread{1};
  HostKeyScanner::Options options;
  options.try_limit = std::chrono::hours(1);
  HostKeyScanner patient(loop, one_thread, options);
  TaskGroup group(loop, log::Logger("test.scan"));
  std::vector<Keys> results;
  for (int i = 0; i < 20; ++i) group.Spawn("scan", ScanInto(patient, loop, hanging.port(), results));
  RunToEnd(loop, UntilAccepted(loop, hanging, 20));
  EXPECT_EQ(RunToEnd(loop, patient.Scan("127.0.0.1", server.port(), true, loop.SteadyNow() + seconds(20))),
            Keys{server.public_key("ed25519")});
  RunToEnd(loop, group.Stop());
  EXPECT_TRUE(results.empty());
  RunToEnd(loop, hanging.Stop());
}

TEST_F(HostKeyScanTest, AServerThatHangsIsWaitedForOnce) {
  SshServerForTest server({"ed25519", "ecdsa-256", "rsa-2048"});
  server.Start();
  SlowRelay relay(loop, server.port(), milliseconds(0), 1);
  HostKeyScanner::Options options;
  options.try_limit = seconds(1);
  HostKeyScanner scanner(loop, pool, options);
  EXPECT_EQ(RunToEnd(loop, scanner.Scan("127.0.0.1", relay.port(), true, loop.SteadyNow() + seconds(20))),
            Keys{server.public_key("ed25519")});
  EXPECT_EQ(relay.unanswered(), 2u) << "one for each further type, at the same time";
  RunToEnd(loop, relay.Stop());
}

TEST_F(HostKeyScanTest, OneConnectionForEachKeyThatTheServerOffers) {
  for (const std::vector<std::string>& types :
       {std::vector<std::string>{"ed25519"}, {"ed25519", "ecdsa-256", "rsa-2048"}}) {
    SshServerForTest server(types);
    server.Start();
    SlowRelay relay(loop, server.port(), milliseconds(0));
    EXPECT_EQ(Scan(relay.port()).size(), types.size());
    EXPECT_EQ(relay.passed_on(), types.size());
    RunToEnd(loop, relay.Stop());
  }
}

TEST_F(HostKeyScanTest, AServerMayGreetWithOtherLinesFirst) {
  SshServerForTest server({"ed25519"});
  server.Start();
  SlowRelay relay(loop, server.port(), milliseconds(0), 1000, "Welcome.\r\nYou are watched.\r\n");
  EXPECT_EQ(Scan(relay.port()), Keys{server.public_key("ed25519")});
  RunToEnd(loop, relay.Stop());
}

// NS-4, F-scan-queue
TEST_F(HostKeyScanTest, MoreScansThanTheLimitAllSucceed) {
  SshServerForTest server({"ed25519"});
  server.Start();
  HostKeyScanner::Options options;
  options.max_active = 1;
  HostKeyScanner narrow(loop, pool, options);
  TaskGroup group(loop, log::Logger("test.scan"));
  std::vector<Keys> results;
  for (int i = 0; i < 3; ++i) group.Spawn("scan", ScanInto(narrow, loop, server.port(), results));
  RunToEnd(loop, JoinGroup(group));
  EXPECT_EQ(results, std::vector<Keys>(3, Keys{server.public_key("ed25519")}));
}

// A place in the queue is for a try, not for a machine.
TEST_F(HostKeyScanTest, MachinesThatDoNotAnswerYetHoldUpNoOther) {
  Listener silent(loop, "");
  SshServerForTest server({"ed25519"});
  server.Start();
  HostKeyScanner::Options options;
  options.max_active = 2;
  options.try_limit = seconds(1);
  HostKeyScanner scanner(loop, pool, options);
  TaskGroup group(loop, log::Logger("test.scan"));
  std::vector<Keys> results;
  for (int i = 0; i < 3; ++i) group.Spawn("scan", ScanInto(scanner, loop, silent.port(), results));
  RunToEnd(loop, UntilAccepted(loop, silent, 2));
  EXPECT_EQ(RunToEnd(loop, scanner.Scan("127.0.0.1", server.port(), true, loop.SteadyNow() + seconds(20))),
            Keys{server.public_key("ed25519")});
  EXPECT_TRUE(results.empty());
  RunToEnd(loop, group.Stop());
  RunToEnd(loop, silent.Stop());
}

// NS-4: the limit holds, and the rest waits.
TEST_F(HostKeyScanTest, SoManyTriesAtATimeAndTheRestWaits) {
  Listener silent(loop, "");
  HostKeyScanner::Options options;
  options.max_active = 10;
  HostKeyScanner scanner(loop, pool, options);
  TaskGroup group(loop, log::Logger("test.scan"));
  std::vector<Keys> results;
  for (int i = 0; i < 13; ++i) group.Spawn("scan", ScanInto(scanner, loop, silent.port(), results));
  RunToEnd(loop, UntilAccepted(loop, silent, 10));
  // The others would connect now.
  for (int i = 0; i < 100; ++i) RunToEnd(loop, loop.SleepFor(milliseconds(1)));
  EXPECT_EQ(silent.accepted(), 10u);
  RunToEnd(loop, group.Stop());
  RunToEnd(loop, silent.Stop());
}

// The deadline of a scan includes its time in the queue.
TEST_F(HostKeyScanTest, WaitingInTheQueueCountsAndLeavesNothingBehind) {
  Listener silent(loop, "");
  SshServerForTest server({"ed25519"});
  server.Start();
  HostKeyScanner::Options options;
  options.max_active = 1;
  HostKeyScanner narrow(loop, pool, options);
  TaskGroup group(loop, log::Logger("test.scan"));
  std::vector<Keys> results;
  group.Spawn("blocker", ScanInto(narrow, loop, silent.port(), results));
  try {
    RunToEnd(loop, narrow.Scan("127.0.0.1", server.port(), true, loop.SteadyNow() + milliseconds(300)));
    ADD_FAILURE() << "the scan did not wait for its turn";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kTimedOut);
  }
  RunToEnd(loop, group.Stop());
  EXPECT_EQ(RunToEnd(loop, narrow.Scan("127.0.0.1", server.port(), true, loop.SteadyNow() + seconds(20))),
            Keys{server.public_key("ed25519")});
  RunToEnd(loop, silent.Stop());
}

}  // namespace

}  // namespace nodepool::net
