#include "web/actions/action_endpoints.h"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "launcher/launcher_fixture_for_test.h"
#include "web/api/api.h"
#include "web/api/open_api.h"
#include "web/live/change_log.h"
#include "web/site_for_test.h"

namespace nodepool::web {
namespace {

namespace json = boost::json;
using config::Scope;
using std::chrono::seconds;
using ::testing::HasSubstr;

class ActionsTest : public launcher::LauncherTest {
 protected:
  void SetUp() override {
    LauncherTest::SetUp();
    access_.Configure(WithTokens(
        {Token("ci"), Token("reader", {Scope::kRead}), Token("ops", {Scope::kRead, Scope::kOperate})}));
    ImageName image("debian");
    config_->common.diskimages[image].name = image;
    provider_config().manages_images = true;
    provider_config().diskimages[image] = std::make_shared<driver::ProviderDiskImage>();
    running_ = &StartLauncher();
    router_.emplace(ActionEndpoints(time_.loop(), *running_->launcher, access_));
  }
  net::HttpRequest Asking(std::string method, std::string target, std::string body = "",
                          std::string token = "ops") {
    net::HttpRequest request;
    request.method = std::move(method);
    EXPECT_TRUE(net::ParseTarget(target, request));
    if (!body.empty()) request.headers["content-type"] = "application/json";
    request.headers["authorization"] = "Bearer " + TokenText(token);
    request.headers["accept"] = "application/json";
    request.headers["host"] = "nodepool.example.org";
    request.peer = "192.0.2.1";
    request.body = std::move(body);
    return request;
  }
  Response Send(net::HttpRequest request) { return time_.Run(router_->Answer(std::move(request))); }
  Response Ask(std::string method, std::string target, std::string body = "", std::string token = "ops") {
    return Send(Asking(std::move(method), std::move(target), std::move(body), std::move(token)));
  }
  void AddBuild(const std::string& build, ImageState state) {
    ImageBuild record;
    record.state = state;
    record.state_time = time_.loop().Now();
    Put("/nodepool/images/debian/builds/" + build, ToJson(record));
    time_.Advance(seconds(1));
  }
  void AddUpload(const std::string& build, const std::string& number, ImageState state) {
    ImageUpload record;
    record.state = state;
    record.state_time = time_.loop().Now();
    Put("/nodepool/images/debian/builds/" + build + "/providers/cloud/images/" + number, ToJson(record));
    time_.Advance(seconds(1));
  }

  Running* running_ = nullptr;
  Access access_{time_.loop(), &MatchPlainly};
  std::optional<Router> router_;
  log::Capture log_;
};

json::value Parsed(const Response& response) { return json::parse(response.whole_body()); }

// ACT-9, ACT-11
TEST_F(ActionsTest, NodesAreHeldGivenBackAndDeleted) {
  std::string id = AddNode(NodeState::kReady).value;
  std::string path = "/api/v1/nodes/" + id;
  Response held = Ask("POST", path + "/hold", R"({"reason": "bug 7", "seconds": 600})");
  ASSERT_EQ(held.status, 200) << held.body;
  EXPECT_EQ(Parsed(held).at("state"), "hold");
  EXPECT_EQ(Parsed(held).at("comment"), "bug 7");
  EXPECT_EQ(Parsed(held).at("hold_expiration"), 600);
  EXPECT_EQ(Ask("POST", "/api/v1/nodes/" + id.substr(9) + "/hold").status, 200) << "without a body, short id";
  EXPECT_EQ(Ask("POST", path + "/unhold").status, 202);
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }));
  EXPECT_EQ(Ask("POST", path + "/unhold").status, 404);
  std::string other = AddNode(NodeState::kReady).value;
  Response deleted = Ask("DELETE", "/api/v1/nodes/" + other);
  EXPECT_TRUE(deleted.status == 202 || deleted.status == 204) << deleted.status;
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }));
  EXPECT_EQ(log_.Count("ops from 192.0.2.1: hold node " + id + ": done"), 1);
  EXPECT_EQ(log_.Count("ops from 192.0.2.1: delete node " + other + ": done"), 1);
}

// ACT-11
TEST_F(ActionsTest, ALockedNodeIsAConflict) {
  NodeId id = AddNode(NodeState::kReady);
  auto lock = time_.Run(client_store_->nodes.TryLock(id));
  Response refused = Ask("DELETE", "/api/v1/nodes/" + id.value);
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("the node is in use"));
  EXPECT_EQ(Ask("POST", "/api/v1/nodes/" + id.value + "/unhold").status, 409);
  EXPECT_EQ(Read(id)->state, NodeState::kReady);
  EXPECT_EQ(log_.Count("delete node " + id.value + ": refused: "), 1);
  time_.Run(lock->Unlock());
}

// ACT-16
TEST_F(ActionsTest, RulesAboutJobsAreMadeAndDeleted) {
  Response made = Ask("POST", "/api/v1/jobs", R"({"name": "^tox-", "hold_on_failure": 2})");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(Parsed(made).at("name"), "^tox-");
  EXPECT_EQ(Parsed(made).at("hold_on_failure"), 2);
  std::string id(Parsed(made).at("id").as_string());
  Response again = Ask("POST", "/api/v1/jobs", R"({"name": "^tox-"})");
  EXPECT_EQ(again.status, 409);
  EXPECT_THAT(again.whole_body(), HasSubstr("is about job ^tox- already"));
  EXPECT_EQ(Ask("POST", "/api/v1/jobs").status, 415) << "without a body";
  for (const char* body :
       {"{}", R"({"name": ""})", R"({"name": "^("})", R"({"name": "a", "hold_on_failure": -1})"})
    EXPECT_EQ(Ask("POST", "/api/v1/jobs", body).status, 400) << body;
  EXPECT_EQ(Ask("POST", "/api/v1/jobs", R"({"name": "b"})", "ci").status, 403);
  EXPECT_EQ(Ask("DELETE", "/api/v1/jobs/" + id).status, 204);
  EXPECT_EQ(Ask("DELETE", "/api/v1/jobs/" + id).status, 404);
  EXPECT_EQ(log_.Count("ops from 192.0.2.1: create rule about job ^tox-: done"), 1);
}

// ACT-10
TEST_F(ActionsTest, ImagesAreBuiltAndPaused) {
  Response asked = Ask("POST", "/api/v1/images/debian/build");
  ASSERT_EQ(asked.status, 202) << asked.body;
  EXPECT_EQ(Parsed(asked).at("build_request"), "pending");
  EXPECT_EQ(Ask("POST", "/api/v1/images/unknown/build").status, 409);
  EXPECT_EQ(Ask("POST", "/api/v1/images/unknown/pause").status, 404);
  EXPECT_EQ(Ask("POST", "/api/v1/images/unknown/unpause").status, 404);
  Response paused = Ask("POST", "/api/v1/images/debian/pause");
  ASSERT_EQ(paused.status, 200) << paused.body;
  EXPECT_EQ(Parsed(paused).at("is_paused"), true);
  EXPECT_EQ(Parsed(Ask("POST", "/api/v1/images/debian/unpause")).at("is_paused"), false);
}

// ACT-10
TEST_F(ActionsTest, BuildsAndUploadsAreDeleted) {
  AddBuild("b1", ImageState::kReady);
  AddBuild("b2", ImageState::kBuilding);
  AddUpload("b1", "0000000001", ImageState::kReady);
  AddUpload("b1", "0000000002", ImageState::kUploading);
  std::string uploads = "/api/v1/images/debian/builds/b1/uploads/cloud/";
  Response deleted = Ask("DELETE", uploads + "0000000001");
  ASSERT_EQ(deleted.status, 202) << deleted.body;
  EXPECT_EQ(Parsed(deleted).at("state"), "deleting");
  EXPECT_EQ(Ask("DELETE", uploads + "0000000001?force=maybe").status, 400);
  EXPECT_EQ(Ask("DELETE", uploads + "0000000001?force=true").status, 204);
  EXPECT_EQ(Ask("DELETE", uploads + "0000000001").status, 404);
  EXPECT_EQ(Ask("DELETE", uploads + "0000000002").status, 409);
  EXPECT_EQ(Ask("DELETE", "/api/v1/images/debian/builds/b2").status, 409);
  deleted = Ask("DELETE", "/api/v1/images/debian/builds/b1");
  ASSERT_EQ(deleted.status, 202) << deleted.body;
  EXPECT_EQ(Parsed(deleted).at("state"), "deleting");
  EXPECT_EQ(Ask("DELETE", "/api/v1/images/debian/builds/b3").status, 404);
}

// ACT-8
TEST_F(ActionsTest, AnUploadIsRetried) {
  AddBuild("b1", ImageState::kReady);
  AddUpload("b1", "0000000001", ImageState::kFailed);
  std::string path = "/api/v1/images/debian/uploads/cloud/retry";
  Response asked = Ask("POST", path);
  ASSERT_EQ(asked.status, 202) << asked.body;
  EXPECT_EQ(Parsed(asked).at("name"), "debian");
  EXPECT_EQ(zk_.tree().Exists("/nodepool/images/debian/builds/b1/providers/cloud")->version, 1);
  AddUpload("b1", "0000000002", ImageState::kReady);
  EXPECT_EQ(Ask("POST", path).status, 409);
  EXPECT_EQ(Ask("POST", "/api/v1/images/debian/uploads/clod/retry").status, 404);
}

// ACT-1, ACT-2, ACT-7
TEST_F(ActionsTest, ProvidersArePausedDrainedAndUsedAgain) {
  std::vector<std::string> changes;
  ChangeLog log(time_.loop(), *running_->launcher,
                [&](const ChangeEntry& entry) { changes.push_back(entry.text); });
  Router lists(ApiEndpoints(*running_->launcher, std::make_shared<RecentAnswers>(time_.loop())));
  std::string path = "/api/v1/providers/cloud/";
  Response paused = Ask("POST", path + "pause", R"({"reason": "upgrade", "drain": true})");
  ASSERT_EQ(paused.status, 200) << paused.body;
  json::value pause = Parsed(paused).at("pause");
  EXPECT_EQ(pause.at("paused_by"), "ops");
  EXPECT_EQ(pause.at("reason"), "upgrade");
  EXPECT_EQ(pause.at("is_drained"), true);
  EXPECT_EQ(Parsed(Ask("POST", path + "pause")).at("pause").at("is_drained"), false);
  EXPECT_EQ(Ask("POST", "/api/v1/providers/clod/pause").status, 404);
  Put("/nodepool/paused-providers/gone", "{}");
  time_.Advance(seconds(1));
  Response listed = time_.Run(lists.Answer(Asking("GET", "/api/v1/pauses")));
  EXPECT_EQ(Parsed(listed).at("pauses").as_array().size(), 2u) << listed.whole_body();
  EXPECT_EQ(Ask("POST", "/api/v1/providers/gone/unpause").status, 204);
  Response used = Ask("POST", path + "unpause");
  ASSERT_EQ(used.status, 200) << used.body;
  EXPECT_TRUE(Parsed(used).at("pause").is_null());
  EXPECT_EQ(Ask("POST", path + "unpause").status, 404);
  EXPECT_THAT(changes, ::testing::IsSupersetOf({"Provider cloud is drained by ops: upgrade.",
                                                "Provider cloud is paused by ops.",
                                                "Provider cloud is not paused any more."}));
}

// ACT-11: each of them, so that none is forgotten
TEST_F(ActionsTest, EveryActionNeedsTheScopeOperate) {
  std::vector<Endpoint> endpoints = ActionEndpoints(time_.loop(), *running_->launcher, access_);
  EXPECT_EQ(endpoints.size(), 13u);
  for (const Endpoint& endpoint : endpoints) {
    EXPECT_EQ(endpoint.callers, Endpoint::Callers::kTokens);
    std::string path = endpoint.path;
    for (char& c : path) c = c == '{' || c == '}' ? 'x' : c;
    EXPECT_EQ(Ask(endpoint.method, path, "", "ci").status, 403) << path;
    EXPECT_EQ(Ask(endpoint.method, path, "", "reader").status, 403) << path;
    EXPECT_EQ(Ask(endpoint.method, path, "", "nobody").status, 401) << path;
    time_.Advance(seconds(60));
    net::HttpRequest foreign = Asking(endpoint.method, path);
    foreign.headers["origin"] = "https://evil.example.com";
    EXPECT_EQ(Send(std::move(foreign)).status, 403) << path;
    net::HttpRequest without = Asking(endpoint.method, path);
    without.headers.erase("authorization");
    EXPECT_EQ(Send(std::move(without)).status, 401) << path;
    int status = Ask(endpoint.method, path).status;
    EXPECT_TRUE(status == 404 || status == 409 || status == 415) << path << " " << status;
  }
  EXPECT_EQ(log_.Count("ci from 192.0.2.1: delete node xidx: refused, the scope operate is missing"), 1);
}

// ACT-11
TEST_F(ActionsTest, TheyAreDescribed) {
  json::object described = OpenApi(ActionEndpoints(time_.loop(), *running_->launcher, access_), "1");
  const json::value& hold = described.at("paths").at("/api/v1/nodes/{id}/hold").at("post");
  EXPECT_EQ(hold.at("requestBody").at("required"), false);
  EXPECT_EQ(hold.at("parameters").at(0).at("required"), true);
  EXPECT_TRUE(hold.as_object().contains("security"));
  for (const char* status : {"200", "204", "400", "401", "403", "404", "409", "415", "429", "503"})
    EXPECT_TRUE(hold.at("responses").as_object().contains(status)) << status;
}

// ACT-12
TEST_F(ActionsTest, BodiesAreStrict) {
  std::string path = "/api/v1/nodes/" + AddNode(NodeState::kReady).value + "/hold";
  for (const char* bad : {"[]", "{", "null", R"({"reason": 1})", R"({"reason": ""})", R"({"seconds": 0})",
                          R"({"seconds": 1e99})", R"({"seconds": 31536001})", R"({"why": "x"})",
                          R"({"reason": "a", "reason": "b"})", "{} {}"}) {
    EXPECT_EQ(Ask("POST", path, bad).status, 400) << bad;
  }
  EXPECT_EQ(Ask("POST", path, R"({"reason": ")" + std::string(1001, 'x') + "\"}").status, 400);
  EXPECT_EQ(Ask("POST", path + "?reason=x").status, 400);
  EXPECT_EQ(Ask("POST", "/api/v1/providers/cloud/pause", R"({"drain": 1})").status, 400);
  EXPECT_EQ(Ask("POST", "/api/v1/providers/cloud/unpause", R"({"drain": true})").status, 400);
  net::HttpRequest form = Asking("POST", path, R"({"reason": "x"})");
  form.headers["content-type"] = "text/plain";
  EXPECT_EQ(Send(std::move(form)).status, 415);
  EXPECT_EQ(NodesIn(NodeState::kReady).size(), 1u);
}

// ACT-12
TEST_F(ActionsTest, NamesInPathsStayNames) {
  AddBuild("b1", ImageState::kReady);
  NodeId node = AddNode(NodeState::kReady);
  for (const char* path :
       {"/api/v1/images/..%2f..%2fnodes/builds/b1", "/api/v1/images/debian/builds/%2e%2e",
        "/api/v1/images/debian/builds/b1%2f..%2fb1", "/api/v1/images/debian%00/builds/b1",
        "/api/v1/images//builds/b1", "/api/v1/images/debian/builds/b1/", "/api/v1/nodes/../nodes/0000000000",
        "/api/v1/nodes/0000000000%2flock", "/api/v1/images/debian/builds/b1/uploads/cloud/%2e%2e"}) {
    int status = Ask("DELETE", path).status;
    EXPECT_TRUE(status == 404 || status == 405) << path << " " << status;
  }
  EXPECT_EQ(Read(node)->state, NodeState::kReady);
  EXPECT_TRUE(zk_.tree().Exists("/nodepool/images/debian/builds/b1"));
}

}  // namespace
}  // namespace nodepool::web
