#include "web/launcher_site.h"

#include <gmock/gmock.h>

#include <boost/asio/ip/host_name.hpp>

#include "base/crypto.h"
#include "base/metrics.h"
#include "base/text.h"
#include "launcher/launcher_fixture_for_test.h"
#include "web/site_for_test.h"

namespace nodepool::web {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JobEventsSiteTest : public launcher::LauncherTest {
 protected:
  void SetUp() override {
    LauncherTest::SetUp();
    time_.Run(client_store_->jobs.CreateRule({"unit", 1, {}}));
    running_ = &StartLauncher();
    router_.emplace(LauncherEndpoints(time_.loop(), *running_->launcher, prometheus_, state_fault_, access_));
  }
  Response Post(std::string body, std::function<void(net::HttpRequest&)> adjust = {}) {
    net::HttpRequest request;
    request.method = "POST";
    request.path = "/api/v1/job-events";
    request.headers["content-type"] = "application/json; charset=utf-8";
    request.is_from_this_host = true;
    request.body = std::move(body);
    if (adjust) adjust(request);
    return time_.Run(router_->Answer(std::move(request)));
  }
  static std::string Failure(const NodeId& node) {
    return R"({"name": "unit", "build": {"node_name": ")" + node.value + R"(", "status": "FAILURE"}})";
  }

  Running* running_ = nullptr;
  metrics::Prometheus prometheus_;
  std::string state_fault_;
  Access access_{time_.loop(), &MatchPlainly};
  std::optional<Router> router_;
};

// D-67
TEST_F(JobEventsSiteTest, TheAnswerSaysWhetherTheNodeIsHeld) {
  auto nodes = Use({"small"});
  NodeId id = nodes[0].id();
  Response response = Post(Failure(id));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body, R"({"is_kept":true,"node":")" + id.value +
                               R"(","message":"the node is held as soon as it is given back"})");
  EXPECT_EQ(Post(R"({"name": "other", "build": {"node_name": "x"}})").body,
            R"({"is_kept":false,"node":null,"message":"no rule wants nodes of this job held"})");
  Return(nodes);
  EXPECT_TRUE(Await([&] { return Read(id) && Read(id)->state == NodeState::kHold; }));
}

TEST_F(JobEventsSiteTest, OnlyFromThisHostAndOnlyAsJson) {
  auto nodes = Use({"small"});
  std::string body = Failure(nodes[0].id());
  EXPECT_EQ(Post(body, [](net::HttpRequest& request) { request.is_from_this_host = false; }).status, 403);
  EXPECT_EQ(
      Post(body, [](net::HttpRequest& request) { request.headers["content-type"] = "text/plain"; }).status,
      415);
  EXPECT_EQ(Post(body, [](net::HttpRequest& request) { request.headers.clear(); }).status, 415);
  EXPECT_EQ(Post(body, [](net::HttpRequest& request) { request.method = "GET"; }).status, 405);
  for (std::string bad : {"", "{", "[]", "{}", R"({"name": "unit"})"})
    EXPECT_EQ(Post(bad).status, 400) << bad;
  EXPECT_TRUE(Children("/nodepool/jobs/holds").empty());
}

TEST_F(JobEventsSiteTest, NeedsATokenWhereJobsCanConnectFromThisHost) {
  auto nodes = Use({"small"});
  std::string body = Failure(nodes[0].id());
  access_.Configure(
      WithTokens({Token("ci", {config::Scope::kRequest}), Token("admin", {config::Scope::kOperate})}));
  access_.DistrustThisHost();
  auto status = [&](const char* token, bool is_from_this_host = true) {
    return Post(body,
                [&](net::HttpRequest& request) {
                  request.is_from_this_host = is_from_this_host;
                  if (token != nullptr) request.headers["authorization"] = "Bearer " + TokenText(token);
                })
        .status;
  };
  EXPECT_EQ(status(nullptr), 401);
  EXPECT_EQ(status("ci"), 403);
  EXPECT_TRUE(Children("/nodepool/jobs/holds").empty());
  EXPECT_EQ(status("admin", false), 403);
  EXPECT_EQ(status("admin"), 200);
}

TEST_F(JobEventsSiteTest, NotFromPagesOfOthers) {
  auto nodes = Use({"small"});
  std::string body = Failure(nodes[0].id());
  auto status = [&](const char* header, const char* value) {
    return Post(body, [&](net::HttpRequest& request) { request.headers[header] = value; }).status;
  };
  for (const char* origin : {"http://evil.example.com", "null"})
    EXPECT_EQ(status("origin", origin), 403) << origin;
  for (const char* host : {"evil.example.com", "evil.example.com:8005", "127.0.0.1.example.com", "[evil]:80"})
    EXPECT_EQ(status("host", host), 403) << host;
  EXPECT_TRUE(Children("/nodepool/jobs/holds").empty());
  std::string own = boost::asio::ip::host_name();
  for (std::string host : {"localhost:8005", "LOCALHOST", "127.0.0.1:8005", "[::1]:8005", "[::1]"})
    EXPECT_EQ(status("host", host.c_str()), 200) << host;
  EXPECT_EQ(status("host", (own + ":8005").c_str()), 200);
}

TEST_F(JobEventsSiteTest, WithoutZooKeeperTheClientShallTryAgain) {
  zk_.Disconnect(*running_->client);
  time_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Post(Failure(NodeId("0000000001"))).status, 503);
  zk_.Reconnect(*running_->client);
}

constexpr const char* kSecret = "the-hooks-secret";

class RunnerHooksTest : public launcher::LauncherTest {
 protected:
  void SetUp() override {
    LauncherTest::SetUp();
    config::RunnerService service{.name = "octo", .url = "https://github.com/octo"};
    service.mode = config::RunnerMode::kWebhook;
    service.credentials.webhook_secrets = {"the-new-secret", kSecret};
    auto config = std::make_shared<driver::LoadedConfig>(*config_);
    config->common.runners = {service};
    config_ = config;
    running_ = &StartLauncher();
    router_.emplace(LauncherEndpoints(time_.loop(), *running_->launcher, prometheus_, state_fault_, access_));
  }
  static std::string Event(const std::string& state, int id = 7, const std::string& repository = "octo/app") {
    return R"({"action": ")" + state + R"(", "repository": {"full_name": ")" + repository +
           R"("}, "workflow_job": {"id": )" + std::to_string(id) + R"(, "run_id": 70, "status": ")" + state +
           R"(", "name": "build", "labels": ["small"]}})";
  }
  static std::string Sign(const std::string& body, const std::string& secret = kSecret) {
    return "sha256=" + Hex(KeyedDigest(secret, body));
  }
  Response Post(const std::string& body, const std::string& signature,
                const std::function<void(net::HttpRequest&)>& adjust = {}) {
    net::HttpRequest request;
    request.method = "POST";
    request.path = "/api/v1/runners/hooks/octo";
    request.headers["content-type"] = "application/json";
    request.headers["x-github-event"] = "workflow_job";
    request.headers["host"] = "nodepool.example.org";
    if (!signature.empty()) request.headers["x-hub-signature-256"] = signature;
    request.peer = "192.0.2.7";
    request.body = body;
    if (adjust) adjust(request);
    return time_.Run(router_->Answer(std::move(request)));
  }
  int StatusOf(const std::string& body) { return Post(body, Sign(body)).status; }
  std::vector<std::string> Jobs() { return Children("/nodepool/runners/jobs/octo"); }
  std::string Record(const std::string& id) {
    return zk_.tree().Get("/nodepool/runners/jobs/octo/" + id).value().data;
  }

  Running* running_ = nullptr;
  metrics::Prometheus prometheus_;
  std::string state_fault_;
  Access access_{time_.loop(), &MatchPlainly};
  std::optional<Router> router_;
};

// RUN-80
TEST_F(RunnerHooksTest, ASignedDeliveryIsWrittenDown) {
  EXPECT_EQ(StatusOf(Event("queued")), 202);
  ASSERT_THAT(Jobs(), ElementsAre("7"));
  EXPECT_THAT(Record("7"), HasSubstr("\"state\": \"queued\""));
  EXPECT_EQ(Post(Event("queued", 8), Sign(Event("queued", 8), "the-new-secret")).status, 202);
}

// RUN-80: forged, missing, old SHA-1 ones; of other bytes, of another secret, in capital letters.
TEST_F(RunnerHooksTest, OtherSignaturesAreRefused) {
  std::string body = Event("queued");
  std::string good = Sign(body);
  for (const std::string& signature :
       {std::string(), std::string("sha256="), "sha1=" + good.substr(7), good.substr(7), good + "0",
        good.substr(0, good.size() - 1), "sha256=" + std::string(64, '0'), Sign(body, "another-secret"),
        Sign(body + " "), "SHA256=" + good.substr(7)}) {
    time_.Advance(std::chrono::minutes(11));  // the delay is over
    EXPECT_EQ(Post(body, signature).status, 401) << signature;
  }
  time_.Advance(std::chrono::minutes(11));
  auto is_sha1 = [](net::HttpRequest& request) { request.headers["x-hub-signature"] = "sha1=00"; };
  EXPECT_EQ(Post(body, "", is_sha1).status, 401);
  EXPECT_THAT(Jobs(), IsEmpty());
}

// RUN-80: wrong ones have to wait, longer each time; a good one does not.
TEST_F(RunnerHooksTest, WrongSignaturesAreDelayed) {
  std::string body = Event("queued");
  EXPECT_EQ(Post(body, "sha256=0").status, 401);
  Response delayed = Post(body, "sha256=0");
  EXPECT_EQ(delayed.status, 429);
  EXPECT_EQ(delayed.headers.back().first, "Retry-After");
  auto other = [](net::HttpRequest& request) { request.peer = "192.0.2.8"; };
  EXPECT_EQ(Post(body, "sha256=0", other).status, 401);
  EXPECT_EQ(StatusOf(body), 202);
  time_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Post(body, "sha256=0").status, 401);
}

// RUN-81
TEST_F(RunnerHooksTest, DeliveriesCountOnceAndInAnyOrder) {
  EXPECT_EQ(StatusOf(Event("in_progress")), 202);
  EXPECT_EQ(StatusOf(Event("queued")), 202);
  EXPECT_EQ(StatusOf(Event("queued")), 202);
  EXPECT_THAT(Jobs(), ElementsAre("7"));
  EXPECT_THAT(Record("7"), HasSubstr("\"state\": \"in_progress\""));
  EXPECT_EQ(StatusOf(Event("completed")), 202);
  EXPECT_EQ(StatusOf(Event("in_progress")), 202);
  EXPECT_THAT(Record("7"), HasSubstr("\"state\": \"completed\""));
}

TEST_F(RunnerHooksTest, WhatIsNotForUsIsLeftOut) {
  EXPECT_EQ(StatusOf(Event("waiting")), 200);
  EXPECT_EQ(StatusOf(Event("queued", 7, "other/app")), 200);
  EXPECT_EQ(StatusOf("{\"zen\": \"x\"}"), 400);
  std::string ping = "{\"zen\": \"x\"}";
  auto is_ping = [](net::HttpRequest& request) { request.headers["x-github-event"] = "ping"; };
  EXPECT_EQ(Post(ping, Sign(ping), is_ping).status, 200);
  auto is_other = [](net::HttpRequest& request) { request.path = "/api/v1/runners/hooks/forge"; };
  EXPECT_EQ(Post(ping, Sign(ping), is_other).status, 404);
  std::string old = Event("queued");
  old.insert(old.find("\"run_id\""), "\"created_at\": \"2001-01-01T00:00:00Z\", ");
  EXPECT_EQ(StatusOf(old), 200) << "a delivery of long ago, sent again by somebody else";
  EXPECT_THAT(Jobs(), IsEmpty());
}

// RUN-80: it needs no token where reading does.
TEST_F(RunnerHooksTest, ItNeedsNoToken) {
  config::Config config;
  config.webapp.read_needs_token = true;
  access_.Configure(config);
  net::HttpRequest request;
  request.method = "POST";
  request.path = "/api/v1/runners/hooks/octo";
  EXPECT_TRUE(access_.IsOpen(request));
  request.method = "GET";
  EXPECT_FALSE(access_.IsOpen(request));
}

}  // namespace

}  // namespace nodepool::web
