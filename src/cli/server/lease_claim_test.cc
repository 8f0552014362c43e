#include "cli/server/lease_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "cli/commands/exec.h"
#include "driver/cloud/api/scripted_client_for_test.h"
#include "net/http/http_client.h"

namespace nodepool::cli {

namespace {

namespace json = boost::json;
using driver::cloud::api::HeaderOf;
using driver::cloud::api::ScriptedClient;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

json::object Answer() {
  return json::parse(R"({"id": "0123456789abcdef0123456789abcdef", "state": "held", "lease": 60, "waits": [],
    "failure": null, "ready": null, "nodes": [{"id": "0000000007", "labels": ["small"], "interface_ip": "::1",
    "connection_type": "ssh", "connection_port": 22, "host_keys": ["ssh-rsa AAAA"], "username": null}]})")
      .as_object();
}

std::string FaultOf(const json::value& answer) {
  Expected<LeaseView> view = ReadLeaseView(json::serialize(answer));
  return view ? "" : view.error().message();
}

TEST(LeaseViewTest, HasWhatALoginNeeds) {
  Expected<LeaseView> view = ReadLeaseView(json::serialize(Answer()));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->state, LeaseState::kHeld);
  EXPECT_EQ(view->lasts, std::chrono::seconds(60));
  EXPECT_EQ(view->ready, std::nullopt);
  ASSERT_EQ(view->nodes.size(), 1u);
  EXPECT_EQ(view->nodes[0].record.interface_ip, "::1");
  EXPECT_EQ(view->nodes[0].record.username, std::nullopt);
}

TEST(LeaseViewTest, AnyOtherAnswerIsRefused) {
  EXPECT_THAT(FaultOf("text"), HasSubstr("no JSON object"));
  EXPECT_FALSE(ReadLeaseView("<html>"));
  EXPECT_FALSE(ReadLeaseView(std::string(100'000, '[')));
  for (const auto& [key, values] : std::vector<std::pair<std::string, json::array>>{
           {"id", {nullptr, 7, "../../nodes", std::string(31, 'a')}},
           {"state", {nullptr, "gone", 1}},
           {"lease", {nullptr, 0, -5, 1e300, "60"}},
           {"nodes",
            {nullptr, json::object(), json::array{7}, json::array{json::object()},
             json::array{json::object{{"id", "-oProxyCommand=x"}}}, json::array{json::object{{"id", "7"}}},
             json::array(101)}}}) {
    for (const json::value& value : values) {
      json::object answer = Answer();
      answer[key] = value;
      EXPECT_NE(FaultOf(answer), "") << key << " " << json::serialize(value);
    }
  }
}

TEST(LeaseViewTest, WhatIsOnlyForPeopleMayBeAnything) {
  json::object answer = Answer();
  answer["waits"] = json::array{7, json::object{{"text", 5}}};
  answer["ready"] = "many";
  answer["failure"] = json::array();
  EXPECT_EQ(FaultOf(answer), "");
  answer["failure"] = "a\x1b[2Jb";
  EXPECT_THAT(ReadLeaseView(json::serialize(answer))->failure, Not(HasSubstr("\x1b")));
}

TEST(ServerOptionsTest, TheAddressIsThatOfAServer) {
  for (const char* good : {"https://nodepool.example", "http://127.0.0.1:8005/", "https://h/below/nodepool"})
    EXPECT_EQ(FaultOfServer(good), "") << good;
  for (const char* bad :
       {"", "nodepool.example:8005", "ftp://h/", "https://u:p@h/", "https://h/?a=b", "https://h/#x"})
    EXPECT_NE(FaultOfServer(bad), "") << bad;
}

// EXEC-17
TEST(ServerOptionsTest, TheTokenIsInAFileOrInTheEnvironment) {
  std::string path = ::testing::TempDir() + "token-" + std::to_string(::getpid());
  auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  ServerOptions options{.url = "https://h//", .token_file = path};
  auto token = [&] {
    Expected<ServerAccess> access = AccessOf(options);
    return access ? access->token : access.error().message();
  };
  write("ci.0123\n");
  EXPECT_EQ(token(), "ci.0123");
  EXPECT_EQ(AccessOf(options)->url, "https://h");
  for (const std::string& bad :
       {std::string("ci.01\r\nX-Evil: 1"), std::string("secret without"), "ci." + std::string(2'000, 'x')}) {
    write(bad);
    EXPECT_THAT(token(), HasSubstr("is no token"));
    EXPECT_THAT(token(), Not(HasSubstr(bad.substr(0, 5))));
  }
  std::filesystem::remove(path);
  EXPECT_THAT(token(), HasSubstr("cannot be read"));
  options.token_file.reset();
  ::unsetenv(kTokenVariable);
  EXPECT_THAT(token(), HasSubstr("NODEPOOL_TOKEN has no token"));
  ::setenv(kTokenVariable, "env.4567", 1);
  EXPECT_EQ(token(), "env.4567");
  ::unsetenv(kTokenVariable);
}

constexpr const char* kUrl = "https://nodepool.example";
constexpr const char* kToken = "ci.0123456789abcdef";
const std::string kId(32, 'a');

// What a server does that has one request at a time.
class LeaseClaimTest : public ::testing::Test {
 protected:
  ~LeaseClaimTest() override { time_.Run(tasks_.Stop()); }

  net::HttpReply Answer(const net::HttpCall& call) {
    if (failure_) throw *failure_;
    if (refusal_ != 0) return {refusal_, {}, R"({"message": "for a reason"})"};
    if (call.method == "DELETE") {
      bool was_there = exists_;
      exists_ = false;
      return {was_there ? 204 : 404, {}, ""};
    }
    if (call.method == "POST" && call.url.ends_with("/requests")) exists_ = true;
    if (!exists_) return {404, {}, R"({"message": "There is no such request."})"};
    return {200, {}, Lease()};
  }

  std::string Lease() const {
    std::string nodes;
    for (const char* id : nodes_) {
      nodes += std::string(nodes.empty() ? "" : ",") + R"({"id": ")" + id +
               R"(", "labels": ["small"], "interface_ip": "192.0.2.7", "connection_port": 2222,
                 "connection_type": "ssh", "host_keys": ["ssh-ed25519 AAAA"], "username": "zuul"})";
    }
    return R"({"id": ")" + kId + R"(", "state": ")" + state_ + R"(", "lease": 300, "failure": "no quota", )" +
           R"("ready": )" + ready_ +
           R"(, "waits": [{"provider": "cloud", "pool": "main", "reason": "capacity", "text": "is full"}], )" +
           R"("nodes": [)" + nodes + "]}";
  }

  void HaveNodes() {
    state_ = "held";
    nodes_ = {"0000000001", "0000000002"};
  }

  static NodeWish Wish() {
    NodeWish wish;
    wish.labels = {LabelName("small"), LabelName("small")};
    return wish;
  }

  // The message of the error; empty: there was none.
  std::string FailureOf(Task<> task) {
    try {
      time_.Run(std::move(task), 1h);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }

  std::size_t CallsOf(std::string_view method, std::string_view part) const {
    return static_cast<std::size_t>(std::ranges::count_if(http_.calls, [&](const net::HttpCall& call) {
      return call.method == method && call.url.find(part) != std::string::npos;
    }));
  }

  void ExpectNoSecret() {
    EXPECT_EQ(log_.Count("0123456789"), 0);
    for (const net::HttpCall& call : http_.calls) {
      EXPECT_THAT(call.url, Not(HasSubstr("0123456789")));
      EXPECT_FALSE(call.follows_redirects);
    }
  }

  testing::VirtualTime time_;
  SeededRandom random_{1};
  std::ostringstream out_;
  log::Capture log_;
  Console console_{time_.loop(), random_, out_};
  ScriptedClient http_{time_.loop(), [this](const net::HttpCall& call) { return Answer(call); }};
  LeaseClient client_{http_, {kUrl, kToken, "/etc/ca.pem"}};
  LeaseClaim claim_{console_, client_, Wish(), LeaseTimes()};
  TaskGroup tasks_{time_.loop(), log::Logger("test")};
  std::optional<net::HttpError> failure_;
  int refusal_ = 0;
  bool exists_ = false;
  std::string state_ = "waiting";
  std::string ready_ = "null";
  std::vector<const char*> nodes_;
};

Task<> After(Loop& loop, Duration duration, std::function<void()> change) {
  co_await loop.SleepFor(duration);
  change();
}

const net::HttpError kAway(Verdict::kRetry, "no route", true);
const net::HttpError kRefused(Verdict::kRetry, "connection refused", false);

TEST_F(LeaseClaimTest, ACertificateThatIsNotTrustedNamesTheOption) {
  ScriptedClient http{time_.loop(), [](const net::HttpCall&) -> net::HttpReply {
                        throw net::UntrustedServer("self-signed certificate");
                      }};
  struct Case {
    const char* ca;
    const char* message;
  };
  for (const auto& [ca, message] :
       {Case{"", "self-signed certificate; --ca names the file of the authority that has signed it"},
        Case{"/etc/ca.pem", "self-signed certificate; no authority in the file of --ca has signed it"}}) {
    LeaseClient client(http, {kUrl, kToken, ca});
    LeaseClaim claim(console_, client, Wish(), LeaseTimes());
    EXPECT_EQ(FailureOf(claim.Obtain()), message);
  }
}

// EXEC-14
TEST_F(LeaseClaimTest, FromTheRequestToTheReturn) {
  tasks_.Spawn("serve", After(time_.loop(), 50s, [this] { HaveNodes(); }));
  time_.Run(claim_.Obtain());
  const net::HttpCall& first = http_.calls.front();
  EXPECT_EQ(first.url, std::string(kUrl) + "/api/v1/requests");
  EXPECT_EQ(HeaderOf(first, "Authorization"), std::string("Bearer ") + kToken);
  EXPECT_EQ(first.tls->ca_path, "/etc/ca.pem");
  EXPECT_EQ(boost::json::parse(first.body),
            boost::json::parse(R"({"labels": ["small", "small"], "lease": 300})"))
      << "what is not asked for is left to the token";
  ASSERT_EQ(claim_.nodes().size(), 2u);
  EXPECT_EQ(claim_.nodes()[1].id.value, "0000000002");
  EXPECT_EQ(claim_.nodes()[0].record.connection_port.integer(), 2222);
  time_.Run(claim_.Keep(time_.clock().SteadyNow() + 1000s), 1h);
  EXPECT_EQ(CallsOf("POST", kId + "/renew"), 10u) << "at a third of the lease";
  time_.Run(claim_.End());
  EXPECT_FALSE(exists_);
  time_.Run(claim_.End());
  EXPECT_EQ(CallsOf("DELETE", kId), 1u);
  ExpectNoSecret();
}

// EXEC-14
TEST_F(LeaseClaimTest, WhatIsAskedForIsSent) {
  NodeWish wish = Wish();
  wish.priority = 7;
  wish.tenant = "team";
  wish.requestor = "me";
  wish.provider = ProviderName("cloud");
  state_ = "failed";
  LeaseClaim claim(console_, client_, wish, {.lease = 30s});
  EXPECT_THAT(FailureOf(claim.Obtain()), HasSubstr("failed: no quota"));
  EXPECT_EQ(boost::json::parse(http_.calls.front().body),
            boost::json::parse(R"({"labels": ["small", "small"], "lease": 30, "priority": 7, "tenant": "team",
                                   "requestor": "me", "provider": "cloud"})"));
}

// EXEC-15
TEST_F(LeaseClaimTest, AServerThatIsAwayForAWhileLosesNoNodes) {
  HaveNodes();
  time_.Run(claim_.Obtain());
  failure_ = kAway;
  tasks_.Spawn("return", After(time_.loop(), 250s, [this] { failure_.reset(); }));
  time_.Run(claim_.Keep(time_.clock().SteadyNow() + 1000s), 1h);
  EXPECT_EQ(claim_.nodes().size(), 2u);
  EXPECT_EQ(log_.Count("no route; it is asked again for 200 s"), 1);
  EXPECT_EQ(log_.Count("answers again"), 1);
}

// EXEC-15
TEST_F(LeaseClaimTest, TheNodesAreLostAtTheEndOfTheLease) {
  HaveNodes();
  time_.Run(claim_.Obtain());
  SteadyTime obtained = time_.clock().SteadyNow();
  failure_ = kAway;
  EXPECT_THAT(FailureOf(claim_.Keep(SteadyTime::max())),
              HasSubstr("and with it the claim to the nodes: no route"));
  EXPECT_LE(time_.clock().SteadyNow() - obtained, 300s);
  EXPECT_GE(time_.clock().SteadyNow() - obtained, 299s);
  EXPECT_TRUE(claim_.nodes().empty());
  SteadyTime begin = time_.clock().SteadyNow();
  time_.Run(claim_.End());
  EXPECT_LE(time_.clock().SteadyNow() - begin, 10s);
  EXPECT_EQ(log_.Count("the server gives the nodes back when the lease ends, in 300 s at most"), 1);
}

// EXEC-15
TEST_F(LeaseClaimTest, AnAnswerThatNeverComesIsNotAwaitedLonger) {
  HaveNodes();
  time_.Run(claim_.Obtain());
  SteadyTime obtained = time_.clock().SteadyNow();
  http_.is_silent = true;
  EXPECT_NE(FailureOf(claim_.Keep(SteadyTime::max())), "");
  EXPECT_LE(time_.clock().SteadyNow() - obtained, 300s);
}

// EXEC-15
TEST_F(LeaseClaimTest, ALeaseThatHasEndedIsLostAtOnce) {
  HaveNodes();
  time_.Run(claim_.Obtain());
  exists_ = false;
  EXPECT_THAT(FailureOf(claim_.Keep(SteadyTime::max())),
              HasSubstr("404 Not Found: There is no such request."));
  EXPECT_EQ(CallsOf("POST", "/renew"), 1u);
}

// EXEC-15
TEST_F(LeaseClaimTest, ATokenThatIsRefusedForAWhileLosesNoNodes) {
  HaveNodes();
  time_.Run(claim_.Obtain());
  refusal_ = 401;
  tasks_.Spawn("return", After(time_.loop(), 200s, [this] { refusal_ = 0; }));
  time_.Run(claim_.Keep(time_.clock().SteadyNow() + 500s), 1h);
  EXPECT_EQ(claim_.nodes().size(), 2u);
}

// EXEC-15
TEST_F(LeaseClaimTest, NodesThatAreTakenAwayAreDropped) {
  HaveNodes();
  time_.Run(claim_.Obtain());
  nodes_ = {"0000000002"};
  time_.Run(claim_.Keep(time_.clock().SteadyNow() + 150s));
  ASSERT_EQ(claim_.nodes().size(), 1u);
  EXPECT_EQ(log_.Count("Node 0000000001 was taken away"), 1);
  nodes_.clear();
  time_.Run(claim_.Keep(SteadyTime::max()));
  EXPECT_TRUE(claim_.nodes().empty());
}

// EXEC-16
TEST_F(LeaseClaimTest, ALostAnswerMakesNoSecondRequest) {
  failure_ = kAway;
  HaveNodes();
  tasks_.Spawn("return", After(time_.loop(), 5s, [this] { failure_.reset(); }));
  time_.Run(claim_.Obtain());
  ASSERT_GT(CallsOf("POST", "/requests"), 1u);
  for (const net::HttpCall& call : http_.calls)
    EXPECT_EQ(HeaderOf(call, "Idempotency-Key"), HeaderOf(http_.calls.front(), "Idempotency-Key"));
}

// EXEC-16
TEST_F(LeaseClaimTest, ARequestWhoseAnswerIsNotAwaitedIsEnded) {
  http_.is_silent = true;
  tasks_.Spawn("obtain", claim_.Obtain());
  time_.Advance(1s);
  time_.Run(tasks_.Stop());
  exists_ = true;
  http_.is_silent = false;
  time_.Run(claim_.End());
  EXPECT_FALSE(exists_);
  EXPECT_EQ(HeaderOf(http_.calls[0], "Idempotency-Key"), HeaderOf(http_.calls[1], "Idempotency-Key"));
}

// EXEC-15
TEST_F(LeaseClaimTest, AServerThatIsNotThereIsAwaitedForTenSeconds) {
  failure_ = kRefused;
  SteadyTime begin = time_.clock().SteadyNow();
  EXPECT_EQ(FailureOf(claim_.Obtain()), "connection refused");
  EXPECT_LE(time_.clock().SteadyNow() - begin, 11s);
  std::size_t calls = http_.calls.size();
  time_.Run(claim_.End());
  EXPECT_EQ(http_.calls.size(), calls) << "there is nothing to end";
}

// EXEC-11
TEST_F(LeaseClaimTest, WhatIsRefusedIsNotAskedAgain) {
  for (int status : {302, 400, 401, 403, 409}) {
    LeaseClaim claim(console_, client_, Wish(), LeaseTimes());
    http_.calls.clear();
    refusal_ = status;
    EXPECT_THAT(FailureOf(claim.Obtain()), HasSubstr(std::to_string(status)));
    time_.Run(claim.End());
    EXPECT_EQ(http_.calls.size(), 1u) << status;
  }
}

// EXEC-18
TEST_F(LeaseClaimTest, ProgressSaysWhyItWaits) {
  EXPECT_EQ(claim_.Progress(), "asking");
  tasks_.Spawn("obtain", claim_.Obtain());
  time_.Advance(100ms);
  EXPECT_EQ(claim_.Progress(), "waiting; cloud main is full");
  ready_ = "1";
  time_.Run(claim_.AskForProgress());
  EXPECT_EQ(claim_.Progress(), "booting, 1 of 2 ready");
  failure_ = kAway;
  time_.Run(claim_.AskForProgress());
  EXPECT_EQ(claim_.Progress(), "booting, 1 of 2 ready");
}

// EXEC-15
TEST_F(LeaseClaimTest, AServerThatAnswersAtOnceIsNotAskedAllTheTime) {
  tasks_.Spawn("obtain", claim_.Obtain());
  time_.Advance(60s);
  EXPECT_LE(http_.calls.size(), 32u);
}

}  // namespace

}  // namespace nodepool::cli
