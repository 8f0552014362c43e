#include "web/runner_hooks.h"

#include <gmock/gmock.h>

#include "base/digest.h"
#include "base/encoding.h"
#include "base/metrics/prometheus.h"
#include "launcher/launcher_fixture_for_test.h"
#include "web/access/tokens_for_test.h"
#include "web/launcher_site.h"

namespace nodepool::web {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
