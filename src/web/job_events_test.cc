#include "web/job_events.h"

#include <gmock/gmock.h>

#include <boost/asio/ip/host_name.hpp>

#include "base/metrics/prometheus.h"
#include "launcher/launcher_fixture_for_test.h"
#include "web/access/tokens_for_test.h"
#include "web/launcher_site.h"

namespace nodepool::web {
namespace {

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

}  // namespace
}  // namespace nodepool::web
