#include "web/access/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/crypto.h"
#include "web/site_for_test.h"

namespace nodepool::web {

namespace {

using config::Scope;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Compares once `go` is set.
Task<bool> Await(Event& go, std::vector<std::string>& secrets, std::string secret, std::string hash) {
  secrets.push_back(secret);
  co_await go.Wait();
  co_return secret == hash;
}

Task<> Note(Access& access, Request request, std::vector<int>& statuses) {
  std::expected<Caller, Response> caller = co_await access.Identify(request);
  statuses.push_back(caller ? 200 : caller.error().status);
}

class AccessTest : public ::testing::Test {
 protected:
  static Request With(std::string authorization, std::string peer = "192.0.2.1") {
    Request request;
    if (!authorization.empty()) request.headers["authorization"] = std::move(authorization);
    request.peer = std::move(peer);
    return request;
  }
  std::expected<Caller, Response> Identify(std::string authorization, std::string peer = "192.0.2.1") {
    Request request = With(std::move(authorization), std::move(peer));
    return time_.Run(access_.Identify(request));
  }
  int StatusOf(std::string authorization, std::string peer = "192.0.2.1") {
    std::expected<Caller, Response> caller = Identify(std::move(authorization), std::move(peer));
    return caller ? 200 : caller.error().status;
  }
  Task<bool> Count(std::string secret, std::string hash) {
    ++verifications_;
    return MatchPlainly(std::move(secret), std::move(hash));
  }

  testing::VirtualTime time_;
  int verifications_ = 0;
  Access access_{time_.loop(), [this](std::string secret, std::string hash) {
                   return Count(std::move(secret), std::move(hash));
                 }};
  log::Capture log_;
};

// REQ-16
TEST_F(AccessTest, WithoutTokensNobodyMayChangeAnything) {
  std::expected<Caller, Response> caller = Identify("Bearer " + TokenText("ci"));
  ASSERT_FALSE(caller);
  EXPECT_EQ(caller.error().status, 403);
  EXPECT_THAT(caller.error().body, HasSubstr("nodepool token"));
  EXPECT_TRUE(access_.IsOpen(With("")));
}

TEST_F(AccessTest, ATokenIsVerifiedOnce) {
  access_.Configure(WithTokens({Token("ci"), Token("ops", {Scope::kOperate})}));
  for (int i = 0; i < 3; ++i) {
    std::expected<Caller, Response> caller = Identify("Bearer " + TokenText("ci"));
    ASSERT_TRUE(caller);
    EXPECT_EQ(caller->name(), "ci");
    EXPECT_TRUE(caller->may(Scope::kRequest));
    EXPECT_FALSE(caller->may(Scope::kOperate));
  }
  EXPECT_EQ(verifications_, 1);
  EXPECT_EQ(StatusOf("bearer  " + TokenText("ops") + " "), 200);
  access_.Configure(WithTokens({Token("ops")}));
  EXPECT_EQ(StatusOf("Bearer " + TokenText("ci")), 401) << "it is not in the configuration any more";
}

// REQ-27
TEST_F(AccessTest, AReloadForgetsNobody) {
  access_.Configure(WithTokens({Token("ci"), Token("ops")}));
  for (const char* name : {"ci", "ops"}) EXPECT_EQ(StatusOf("Bearer " + TokenText(name)), 200);
  access_.Configure(WithTokens({Token("ci", {Scope::kRead}), Token("new")}));
  std::expected<Caller, Response> caller = Identify("Bearer " + TokenText("ci"));
  ASSERT_TRUE(caller);
  EXPECT_FALSE(caller->may(Scope::kRequest)) << "what it may do is that of the new configuration";
  EXPECT_EQ(verifications_, 2);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(StatusOf("Bearer " + TokenText("ops")), 401);
  EXPECT_EQ(StatusOf("Bearer " + TokenText("new")), 200) << "a token that was withdrawn is no guess";
  access_.Configure(WithTokens({Token("ops")}));
  EXPECT_EQ(StatusOf("Bearer " + TokenText("ops")), 200);
}

// REQ-27
TEST_F(AccessTest, AChangedSecretIsVerifiedOnceMore) {
  access_.Configure(WithTokens({Token("ci"), Token("ops")}));
  EXPECT_EQ(StatusOf("Bearer " + TokenText("ci")), 200);
  config::WebToken changed = Token("ci");
  changed.hash = "another";
  access_.Configure(WithTokens({changed, Token("ops")}));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(StatusOf("Bearer " + TokenText("ci")), 401);
  EXPECT_EQ(StatusOf("Bearer " + TokenText("ops")), 200);
  EXPECT_EQ(StatusOf("Bearer ci.another"), 200);
  EXPECT_EQ(verifications_, 4);
}

// REQ-27: with the hash that `nodepool token` prints there is nothing to wait for
TEST_F(AccessTest, ARandomSecretIsVerifiedAtOnce) {
  std::string secret = RandomSecret();
  config::WebToken token = Token("ci");
  token.hash = HashRandomSecret(secret);
  access_.Configure(WithTokens({token}));
  EXPECT_EQ(StatusOf("Bearer ci." + RandomSecret()), 401);
  EXPECT_EQ(StatusOf("Bearer ci." + secret), 429) << "guesses of its network count all the same";
  EXPECT_EQ(StatusOf("Bearer ci." + secret, "192.0.2.2"), 200);
  EXPECT_EQ(verifications_, 0);
}

// REQ-28
TEST_F(AccessTest, WhatGoesOnForLongFollowsTheTokens) {
  access_.Configure(WithTokens({Token("ci")}));
  Caller caller = *Identify("Bearer " + TokenText("ci"));
  int changes = 0;
  Subscription changed = access_.OnChange([&] { ++changes; });
  access_.Configure(WithTokens({Token("ci", {Scope::kOperate})}));
  std::optional<Caller> now = access_.Renewed(caller);
  ASSERT_TRUE(now);
  EXPECT_TRUE(now->may(Scope::kOperate));
  access_.Configure(WithTokens({}));
  EXPECT_FALSE(access_.Renewed(caller));
  EXPECT_EQ(changes, 2);
}

// REQ-17
TEST_F(AccessTest, RefusalsSayNothingAndBecomeSlower) {
  access_.Configure(WithTokens({Token("ci")}));
  std::string unknown = Identify("Bearer nobody.secret", "192.0.2.2").error().body;
  EXPECT_EQ(Identify("Bearer ci.guess", "192.0.2.3").error().body, unknown);
  EXPECT_EQ(verifications_, 1) << "an unknown name costs nothing";
  EXPECT_EQ(StatusOf("Bearer other.guess", "192.0.2.3"), 429);
  EXPECT_EQ(verifications_, 1);
  time_.Advance(milliseconds(250));
  EXPECT_EQ(StatusOf("Bearer ci.guess", "192.0.2.3"), 401);
  time_.Advance(milliseconds(250));
  std::expected<Caller, Response> refused = Identify("Bearer ci.guess", "192.0.2.3");
  EXPECT_EQ(refused.error().status, 429);
  EXPECT_THAT(refused.error().headers,
              ::testing::Contains(std::pair<std::string, std::string>("Retry-After", "1")));
}

// ACT-15
TEST_F(AccessTest, AStrangerWithTheNameOfATokenDelaysNobodyElse) {
  access_.Configure(WithTokens({Token("ci")}));
  for (int i = 0; i < 20; ++i) StatusOf("Bearer ci.guess", "192.0.2.9");
  EXPECT_EQ(StatusOf("Bearer " + TokenText("ci"), "192.0.2.9"), 429) << "the stranger's own address";
  EXPECT_EQ(StatusOf("Bearer " + TokenText("ci"), "192.0.2.1"), 200);
}

// ACT-15: however many addresses of its network a stranger uses
TEST_F(AccessTest, ANetworkHasOneAttemptAtATime) {
  std::vector<std::string> secrets;
  Event go;
  Access slow(time_.loop(), [&](std::string secret, std::string hash) {
    return Await(go, secrets, std::move(secret), std::move(hash));
  });
  slow.Configure(WithTokens({Token("ci")}));
  TaskGroup tasks(time_.loop(), log::Logger("test"));
  std::map<std::string, std::vector<int>> statuses;
  auto ask = [&](std::string text, std::string peer) {
    tasks.Spawn("ask", Note(slow, With("Bearer " + text, peer), statuses[text]));
  };
  for (int i = 0; i < 40; ++i) ask("ci.guess", "2001:db8::" + std::to_string(i + 1));
  ask(TokenText("ci"), "2001:db8:0:1::1");
  time_.Advance(milliseconds(1));
  EXPECT_EQ(secrets, (std::vector<std::string>{"guess", "secret-of-ci"}))
      << "it did not wait for the stranger";
  EXPECT_TRUE(statuses["ci.guess"].empty());
  go.Set();
  time_.Advance(milliseconds(1));
  EXPECT_EQ(statuses[TokenText("ci")], std::vector<int>{200});
  EXPECT_EQ(secrets.size(), 2u) << "those that waited have to pause";
  EXPECT_EQ(std::ranges::count(statuses["ci.guess"], 401), 1);
  EXPECT_EQ(std::ranges::count(statuses["ci.guess"], 429), 39);
  time_.Run(tasks.Stop());
}

// Clients of one network whose tokens are good need only one verification of each, however many come at once.
// REQ-27
TEST_F(AccessTest, ThoseWhoWaitForTheSameTokenAreAnsweredTogether) {
  access_.Configure(WithTokens({Token("ci"), Token("ops")}));
  TaskGroup tasks(time_.loop(), log::Logger("test"));
  std::vector<int> statuses;
  for (int i = 0; i < 100; ++i) {
    for (const char* name : {"ci", "ops"})
      tasks.Spawn("ask", Note(access_, With("Bearer " + TokenText(name)), statuses));
  }
  time_.Advance(milliseconds(1));
  EXPECT_EQ(statuses, std::vector<int>(200, 200));
  EXPECT_EQ(verifications_, 2);
  time_.Run(tasks.Stop());
}

// REQ-17
TEST_F(AccessTest, AVerifiedTokenIsNotSlowedDown) {
  access_.Configure(WithTokens({Token("ci")}));
  EXPECT_EQ(StatusOf("Bearer " + TokenText("ci")), 200);
  for (int i = 0; i < 5; ++i) StatusOf("Bearer ci.guess", "192.0.2.9");
  EXPECT_EQ(StatusOf("Bearer " + TokenText("ci")), 200);
}

TEST_F(AccessTest, MalformedHeadersAreRefused) {
  access_.Configure(WithTokens({Token("ci")}));
  for (std::string bad : {"", "Bearer", "Bearer ", "Basic Y2k6c2VjcmV0", "ci.secret-of-ci"}) {
    EXPECT_EQ(StatusOf(bad), 401) << bad;
    time_.Advance(seconds(60));
  }
  for (std::string bad : {std::string("."), std::string("ci"), std::string("ci."), std::string(100'000, 'x'),
                          std::string("ci.secret-of-ci\n"), std::string("../ci.secret-of-ci")}) {
    EXPECT_EQ(StatusOf("Bearer " + bad), bad == "ci.secret-of-ci\n" ? 200 : 401) << bad.substr(0, 20);
    time_.Advance(seconds(60));
  }
}

// REQ-21
TEST_F(AccessTest, NoSecretIsLogged) {
  access_.Configure(WithTokens({Token("ci")}));
  StatusOf("Bearer ci.hunter2");
  StatusOf("Bearer hunter2", "192.0.2.7");
  StatusOf("Bearer hunter2.ci", "192.0.2.8");
  EXPECT_EQ(log_.Count("hunter2"), 0);
  EXPECT_EQ(log_.Count("ci from 192.0.2.1: a token was refused"), 1);
  EXPECT_EQ(log_.Count("? from 192.0.2.7: a token was refused"), 1);
  time_.Advance(seconds(1));
  Caller caller = *Identify("Bearer " + TokenText("ci"), "192.0.2.5");
  access_.Audit(caller, "request 1: made");
  EXPECT_EQ(log_.Count("ci from 192.0.2.5: request 1: made"), 1);
}

// REQ-22, PAGE-9
TEST_F(AccessTest, ReadingMayNeedAToken) {
  config::Config config = WithTokens({Token("reader", {Scope::kRead})});
  config.webapp.read_needs_token = true;
  access_.Configure(config);
  Router router({{"GET", "/ready", Pure([](const Request&) { return Response(); })},
                 {"GET", "/node-list", Pure([](const Request&) { return Response(); })}});
  Endpoint::Handler guard = GuardReading(access_, router);
  auto status = [&](std::string path, std::string authorization, bool is_from_this_host) {
    Request request = With(std::move(authorization));
    request.path = std::move(path);
    request.is_from_this_host = is_from_this_host;
    return time_.Run(guard(request)).status;
  };
  for (const char* path : {"/node-list", "/", "/api/v1/events"})
    EXPECT_EQ(status(path, "", false), 401) << path;
  EXPECT_EQ(status("/node-list", "", true), 200);
  EXPECT_EQ(status("/ready", "", false), 200);
  EXPECT_EQ(status("/node-list", "Bearer " + TokenText("reader"), false), 200);

  access_.DistrustThisHost();
  access_.Configure(config);
  EXPECT_EQ(status("/node-list", "", true), 401) << "a job may have sent it";
  EXPECT_EQ(status("/node-list", "Bearer " + TokenText("reader"), true), 200);
}

// REQ-29
TEST_F(AccessTest, AWebPageOnThisHostIsNotThisHost) {
  config::Config config = WithTokens({Token("reader", {Scope::kRead})});
  config.webapp.read_needs_token = true;
  access_.Configure(config);
  auto is_open = [&](std::string host, std::string origin) {
    Request request;
    request.path = "/node-list";
    request.is_from_this_host = true;
    request.headers = {{"host", std::move(host)}, {"origin", std::move(origin)}};
    return access_.IsOpen(request);
  };
  for (const char* host : {"localhost", "LOCALHOST:8005", "127.0.0.1:8005", "[::1]:8005", "[::1]", ""})
    EXPECT_TRUE(is_open(host, "")) << host;
  EXPECT_TRUE(is_open("localhost:8005", "http://localhost:8005")) << "the server's own page";
  for (const char* host :
       {"evil.example.com", "localhost.evil.example.com", "localhost:1@evil.example.com",
        "[::1].evil.example.com", "[::1", "[evil.example.com]", "127.0.0.1.evil.example.com:8005",
        "evil.example.com:8005", ":8005", "localhost:80x"}) {
    EXPECT_FALSE(is_open(host, "")) << host;
  }
  for (const char* origin : {"http://evil.example.com", "null"})
    EXPECT_FALSE(is_open("localhost", origin)) << origin;
}

// REQ-29
TEST_F(AccessTest, NoAnswerIsForScriptsOfOtherSitesWhereReadingNeedsAToken) {
  Router router({{"GET", "/node-list", Pure([](const Request&) {
                    Response response;
                    response.headers = {{"Access-Control-Allow-Origin", "*"}};
                    return response;
                  })}});
  Endpoint::Handler guard = GuardReading(access_, router);
  config::Config config = WithTokens({Token("reader", {Scope::kRead})});
  for (bool needs_token : {false, true}) {
    config.webapp.read_needs_token = needs_token;
    access_.Configure(config);
    Request request = With("Bearer " + TokenText("reader"));
    request.path = "/node-list";
    Response response = time_.Run(guard(request));
    EXPECT_EQ(response.status, 200);
    std::pair<std::string, std::string> nosniff("X-Content-Type-Options", "nosniff");
    std::pair<std::string, std::string> all("Access-Control-Allow-Origin", "*");
    EXPECT_THAT(response.headers, ::testing::Contains(nosniff));
    EXPECT_THAT(response.headers, ::testing::Contains(all).Times(needs_token ? 0 : 1));
  }
}

using std::chrono::minutes;

// REQ-17
TEST(AttemptsTest, EachFailureDoublesThePause) {
  Attempts attempts;
  SteadyTime now{};
  EXPECT_EQ(attempts.PauseOf("a", now), Duration::zero());
  for (int pause : {250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000}) {
    attempts.Failed("a", now);
    EXPECT_EQ(attempts.PauseOf("a", now), milliseconds(pause));
    now += milliseconds(pause);
    EXPECT_EQ(attempts.PauseOf("a", now), Duration::zero());
  }
  EXPECT_EQ(attempts.PauseOf("b", now), Duration::zero());
  attempts.Failed("a", now);
  now += minutes(11);
  attempts.Failed("b", now);
  EXPECT_EQ(attempts.size(), 1u) << "what is old is removed";
}

// REQ-17
TEST(AttemptsTest, MemoryIsBounded) {
  Attempts attempts;
  SteadyTime now{};
  for (int i = 0; i < 10'000; ++i) attempts.Failed(std::to_string(i), now + seconds(i % 60));
  EXPECT_EQ(attempts.size(), Attempts::kMaxKeys);
}

}  // namespace

}  // namespace nodepool::web
