// A server whose clients over plain TCP have to show a secret.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "base/log/logging.h"
#include "zk/server/answer.h"
#include "zk/server/server.h"
#include "zk/wire/wire_for_test.h"

namespace nodepool::zk::server {
namespace {

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

}  // namespace
}  // namespace nodepool::zk::server
