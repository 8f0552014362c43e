#include "web/requests/request_endpoints.h"

#include "web/site_for_test.h"

namespace nodepool::web {

namespace {

namespace json = boost::json;
using config::Scope;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// REQ-33
TEST_F(RequestsSiteTest, ATokenSaysWhatItAllows) {
  Response ops = Ask("GET", "/api/v1/token", "", "ops");
  ASSERT_EQ(ops.status, 200) << ops.body;
  EXPECT_EQ(ops.body, R"({"name":"ops","scopes":["read","operate"]})");
  EXPECT_EQ(Ask("GET", "/api/v1/token", "", "reader").body, R"({"name":"reader","scopes":["read"]})");
}

// REQ-1
TEST_F(RequestsSiteTest, ARequestIsMadeServedAndEnded) {
  std::string location = Make(R"({"small": 1, "large": 1})");
  EXPECT_THAT(location, HasSubstr("/api/v1/requests/"));
  ASSERT_TRUE(Await([&] { return Show(location).at("state") == "held"; }));
  json::object lease = Show(location);
  ASSERT_EQ(lease.at("nodes").as_array().size(), 2u);
  const json::value& node = lease.at("nodes").at(0);
  EXPECT_EQ(node.at("interface_ip"), "192.0.2.1");
  EXPECT_EQ(node.at("connection_port"), 22);
  EXPECT_EQ(node.at("labels"), json::array({"small"}));
  EXPECT_EQ(lease.at("client"), "ci");
  EXPECT_EQ(lease.at("requestor"), "ci");
  EXPECT_EQ(Ask("DELETE", location).status, 204);
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }));
  EXPECT_EQ(Ask("GET", location).status, 404);
  EXPECT_EQ(Ask("DELETE", location).status, 404) << "it is done";
}

// REQ-6
TEST_F(RequestsSiteTest, AnIdempotencyKeyNamesOneRequest) {
  auto post = [&](std::string labels, std::string key, std::string token = "ci") {
    net::HttpRequest request = Asking("POST", kRequests, R"({"labels": )" + labels + "}", std::move(token));
    request.headers["idempotency-key"] = std::move(key);
    return Send(std::move(request));
  };
  Response first = post(R"(["small"])", "build-7");
  EXPECT_EQ(first.status, 201);
  Response second = post(R"({"small": 1})", "build-7");
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(LocationOf(second), LocationOf(first));
  EXPECT_EQ(post(R"(["large"])", "build-7").status, 409);
  EXPECT_NE(LocationOf(post(R"(["small"])", "build-8")), LocationOf(first));
  EXPECT_NE(LocationOf(post(R"(["small"])", "build-7", "other")), LocationOf(first));
  EXPECT_EQ(post(R"(["small"])", "a b").status, 400);
}

// REQ-14
TEST_F(RequestsSiteTest, ALongPollEndsWithTheWaiting) {
  script().launch_time = seconds(20);
  std::string location = Make();
  SteadyTime start = time_.loop().SteadyNow();
  Response response = Ask("GET", location + "?wait=60");
  Duration waited = time_.loop().SteadyNow() - start;
  EXPECT_EQ(json::parse(response.body).at("state"), "held");
  EXPECT_GE(waited, seconds(19));
  EXPECT_LE(waited, seconds(25));
  EXPECT_EQ(json::parse(Ask("GET", location + "?wait=60").body).at("state"), "held") << "at once";
  EXPECT_EQ(Ask("GET", location + "?wait=61").status, 400);
  EXPECT_EQ(Ask("GET", location + "?colour=red").status, 400);
}

// REQ-14
TEST_F(RequestsSiteTest, ALongPollRenewsOnlyItsOwnRequest) {
  std::string location = MakeWaiting();
  auto renewed = [&] { return Show(location).at("renewed").as_double(); };
  double before = renewed();
  SteadyTime start = time_.loop().SteadyNow();
  EXPECT_EQ(json::parse(Ask("GET", location + "?wait=10", "", "ops").body).at("state"), "waiting");
  EXPECT_GE(time_.loop().SteadyNow() - start, seconds(10));
  EXPECT_EQ(renewed(), before);
  Ask("GET", location + "?wait=1");
  EXPECT_GT(renewed(), before);
}

// REQ-3
TEST_F(RequestsSiteTest, Renewals) {
  std::string location = MakeHeld();
  double before = Show(location).at("renewed").as_double();
  time_.Advance(seconds(10));
  EXPECT_EQ(Ask("POST", location + "/renew").status, 200);
  EXPECT_GE(Show(location).at("renewed").as_double(), before + 10);
  std::string failed = MakeWaiting();
  RemoveForeignPool("/nodepool/components/pool/elsewhere");
  ASSERT_TRUE(Await([&] { return Show(failed).at("state") == "failed"; }));
  EXPECT_THAT(std::string(Show(failed).at("failure").as_string()), HasSubstr("rare"));
  Response refused = Ask("POST", failed + "/renew");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("failed"));
}

// REQ-7
TEST_F(RequestsSiteTest, ANodeIsHeldForAPerson) {
  std::string location = MakeHeld(R"(["small", "small"])");
  std::string node(Show(location).at("nodes").at(0).at("id").as_string());
  Response response =
      Ask("POST", location + "/hold", R"({"node": ")" + node + R"(", "reason": "bug 7", "seconds": 600})");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(json::parse(response.body).at("nodes").as_array().size(), 1u);
  EXPECT_EQ(Read(NodeId(node))->state, NodeState::kHold);
  EXPECT_EQ(Read(NodeId(node))->comment, "bug 7");
  EXPECT_EQ(Ask("POST", location + "/hold", R"({"node": "0000009999"})").status, 409);
  EXPECT_EQ(Ask("POST", location + "/hold", R"({"nodes": "1"})").status, 400);
  EXPECT_EQ(log_.Count("ci from 192.0.2.1: hold " + node), 1);
}

// REQ-18
TEST_F(RequestsSiteTest, RequestsOfOthersDoNotExist) {
  std::string location = MakeHeld();
  for (std::string token : {"other", "reader"}) {
    EXPECT_EQ(Ask("GET", location, "", token).status, 404);
    EXPECT_EQ(Ask("GET", location + "?wait=5", "", token).status, 404);
    EXPECT_EQ(Ask("POST", location + "/renew", "", token).status, 404);
    EXPECT_EQ(Ask("POST", location + "/hold", R"({"node": "1"})", token).status, 404);
    EXPECT_EQ(Ask("DELETE", location, "", token).status, 404);
    EXPECT_EQ(Ask("GET", location, "", token).body,
              Ask("GET", location.substr(0, location.size() - 32) + std::string(32, 'a'), "", token).body);
    EXPECT_EQ(Ask("GET", "/api/v1/leases", "", token).body, R"({"leases":[],"is_complete":true})");
  }
  EXPECT_EQ(Ask("POST", kRequests, R"({"labels": ["small"]})", "reader").status, 403);
  EXPECT_EQ(Ask("POST", kRequests, R"({"labels": ["small"]})", "ops").status, 403);
  EXPECT_EQ(Show(location, "ops").at("client"), "ci");
  json::value all = json::parse(Ask("GET", "/api/v1/leases", "", "ops").body);
  EXPECT_EQ(all.at("leases").as_array().size(), 1u);
  EXPECT_EQ(Ask("DELETE", location, "", "ops").status, 204);
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }));
}

// REQ-18
TEST_F(RequestsSiteTest, AccessDataIsShownToTheOwnerOnly) {
  std::string location = MakeHeld();
  std::string id(Show(location).at("nodes").at(0).at("id").as_string());
  ChangeNode(NodeId(id), [](Node& node) { node.connection_port = json::object({{"token", "hunter2"}}); });
  time_.Advance(seconds(1));
  EXPECT_EQ(Show(location).at("nodes").at(0).at("connection_port").at("token"), "hunter2");
  EXPECT_EQ(Show(location, "ops").at("nodes").at(0).at("connection_port"), "redacted");
}

// REQ-18
TEST_F(RequestsSiteTest, IdsThatAreNone) {
  for (std::string id : {std::string("1"), std::string(32, 'A'), std::string(32, 'g'), std::string(33, 'a'),
                         std::string("..%2fnodes"), std::string("..%2F..%2F") + std::string(32, 'a'),
                         std::string("%7bid%7d"), std::string(32, 'a') + "%00", std::string("../requests")}) {
    EXPECT_EQ(Ask("GET", "/api/v1/requests/" + id).status, 404) << id;
    EXPECT_EQ(Ask("DELETE", "/api/v1/requests/" + id).status, 404) << id;
  }
  EXPECT_EQ(Ask("GET", "/api/v1/requests/").status, 404);
  EXPECT_EQ(Ask("PUT", "/api/v1/requests/" + std::string(32, 'a')).status, 405);
}

// REQ-19
TEST_F(RequestsSiteTest, ATokenHasSoManyNodes) {
  std::string first = Make(R"(["small"])", "bounded");
  EXPECT_EQ(Ask("POST", kRequests, R"({"labels": {"small": 3}})", "bounded").status, 403);
  Response refused = Ask("POST", kRequests, R"({"labels": {"small": 2}})", "bounded");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("allows 2 nodes at a time; it has 1, held ones included, and 2 more"));
  Make(R"(["small"])", "bounded");
  EXPECT_EQ(Ask("POST", kRequests, R"({"labels": ["small"]})", "bounded").status, 409);
  Ask("DELETE", first, "", "bounded");
  EXPECT_TRUE(Await([&] { return Ask("GET", first, "", "bounded").status == 404; }));
  Make(R"(["small"])", "bounded");
}

// REQ-19
TEST_F(RequestsSiteTest, HeldNodesCount) {
  std::string location = Make(R"(["small", "small"])", "bounded");
  ASSERT_TRUE(Await([&] { return Show(location, "bounded").at("state") == "held"; }));
  std::vector<NodeId> nodes;
  json::object lease = Show(location, "bounded");
  for (const json::value& node : lease.at("nodes").as_array())
    nodes.emplace_back(std::string(node.at("id").as_string()));
  auto ask = [&] { return Ask("POST", kRequests, R"({"labels": ["small"]})", "bounded"); };
  for (const NodeId& node : nodes) {
    EXPECT_EQ(Ask("POST", location + "/hold", R"({"node": ")" + node.value + R"("})", "bounded").status, 200);
    EXPECT_EQ(ask().status, 409);
  }
  EXPECT_EQ(Ask("DELETE", location, "", "bounded").status, 204);
  EXPECT_TRUE(Await([&] { return Ask("GET", location, "", "bounded").status == 404; }));
  EXPECT_THAT(ask().body, HasSubstr("it has 2, held ones included"));
  ChangeNode(nodes[0], [this](Node& node) { node.SetState(NodeState::kUsed, time_.loop().Now()); });
  ASSERT_TRUE(Await([&] { return !Read(nodes[0]); }));
  EXPECT_EQ(ask().status, 201);
  EXPECT_EQ(ask().status, 409);
}

// REQ-19
TEST_F(RequestsSiteTest, WhatAnOperatorHoldsDoesNotCount) {
  std::string location = Make(R"(["small", "small"])", "bounded");
  ASSERT_TRUE(Await([&] { return Show(location, "bounded").at("state") == "held"; }));
  NodeId node(std::string(Show(location, "bounded").at("nodes").at(0).at("id").as_string()));
  ChangeNode(node, [this](Node& record) { record.SetState(NodeState::kHold, time_.loop().Now()); });
  ASSERT_TRUE(Await([&] { return Show(location, "bounded").at("nodes").as_array().size() == 1; }));
  Make(R"(["small"])", "bounded");
}

// REQ-19: while nodes are being held, in any order of what the caches show.
TEST_F(RequestsSiteTest, NodesThatAreBeingHeldCount) {
  std::string location = Make(R"(["small", "small"])", "bounded");
  ASSERT_TRUE(Await([&] { return Show(location, "bounded").at("state") == "held"; }));
  NodeId node(std::string(Show(location, "bounded").at("nodes").at(0).at("id").as_string()));
  std::vector<int> statuses;
  TaskGroup tasks(time_.loop(), log::Logger("test"));
  struct Post {
    static Task<> Run(Router& router, net::HttpRequest request, std::vector<int>& statuses) {
      Response response = co_await router.Answer(std::move(request));
      statuses.push_back(response.status);
    }
  };
  std::vector<int> held;
  std::string body = R"({"node": ")" + node.value + R"("})";
  tasks.Spawn("hold", Post::Run(*router_, Asking("POST", location + "/hold", body, "bounded"), held));
  while (held.empty()) {
    net::HttpRequest request = Asking("POST", kRequests, R"({"labels": ["small"]})", "bounded");
    tasks.Spawn("post", Post::Run(*router_, std::move(request), statuses));
    for (int i = 0; i < 3; ++i) time_.loop().context().poll_one();
  }
  time_.Run(tasks.Join());
  EXPECT_THAT(held, ::testing::ElementsAre(200));
  EXPECT_THAT(statuses, AllOf(::testing::SizeIs(::testing::Gt(5u)), ::testing::Each(409)));
}

// REQ-30
TEST_F(RequestsSiteTest, ATokenHasSoManyLeases) {
  Lease lease;
  lease.state = LeaseState::kFailed;
  lease.client = "bounded";
  auto add = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) Put("/nodepool/leases/" + random_.UuidHex(), ToJson(lease));
  };
  auto ask = [&](std::string token) { return Ask("POST", kRequests, R"({"labels": ["small"]})", token); };
  add(launcher::kMaxLeasesOfClient - 1);
  EXPECT_EQ(ask("bounded").status, 201);
  Response refused = ask("bounded");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("The token bounded has 4000 requests, more are not allowed"));
  EXPECT_EQ(ask("ci").status, 201) << "another token";
  lease.client = "other";
  add(launcher::kMaxLeases - launcher::kMaxLeasesOfClient - 1);
  Response full = ask("ci");
  EXPECT_EQ(full.status, 503);
  EXPECT_THAT(full.body, HasSubstr("There are 16000 requests of all tokens"));
  time_.Advance(std::chrono::minutes(6));
  EXPECT_EQ(ask("ci").status, 201) << "failed ones end soon";
}

// REQ-19: at the same moment
TEST_F(RequestsSiteTest, RequestsThatAreBeingMadeCount) {
  std::vector<int> statuses;
  TaskGroup tasks(time_.loop(), log::Logger("test"));
  struct Post {
    static Task<> Run(Router& router, net::HttpRequest request, std::vector<int>& statuses) {
      Response response = co_await router.Answer(std::move(request));
      statuses.push_back(response.status);
    }
  };
  for (int i = 0; i < 10; ++i)
    tasks.Spawn("post", Post::Run(*router_, Asking("POST", kRequests, R"({"labels": ["small"]})", "bounded"),
                                  statuses));
  time_.Run(tasks.Join());
  EXPECT_EQ(std::ranges::count(statuses, 201), 2);
  EXPECT_EQ(std::ranges::count(statuses, 409), 8);
}

// REQ-20
TEST_F(RequestsSiteTest, PagesOfOtherSitesAreRefused) {
  auto status = [&](const char* origin, const char* host, bool is_from_this_host) {
    net::HttpRequest request = Asking("POST", kRequests, R"({"labels": ["small"]})");
    if (*origin) request.headers["origin"] = origin;
    request.headers["host"] = host;
    request.is_from_this_host = is_from_this_host;
    return Send(std::move(request)).status;
  };
  EXPECT_EQ(status("", "nodepool.example.org", false), 201);
  EXPECT_EQ(status("https://nodepool.example.org", "nodepool.example.org", false), 201);
  EXPECT_EQ(status("http://nodepool.example.org:8005", "nodepool.example.org:8005", false), 201);
  EXPECT_EQ(status("http://evil.example.com", "nodepool.example.org", false), 403);
  EXPECT_EQ(status("null", "nodepool.example.org", false), 403);
  EXPECT_EQ(status("http://", "", false), 403);
  EXPECT_EQ(status("", "rebound.example.com", true), 403);
  EXPECT_EQ(status("http://rebound.example.com", "rebound.example.com", true), 403);
  EXPECT_EQ(status("", "127.0.0.1:8005", true), 201);
  auto list_for = [&](const char* origin, const char* host) {
    net::HttpRequest request = Asking("GET", "/api/v1/leases", "");
    request.headers["origin"] = origin;
    request.headers["host"] = host;
    request.is_from_this_host = true;
    return Send(std::move(request)).status;
  };
  EXPECT_EQ(list_for("", "localhost"), 200);
  EXPECT_EQ(list_for("http://evil.example.com", "localhost"), 403) << "reading needs a token here as well";
  EXPECT_EQ(list_for("", "rebound.example.com"), 403);
}

// REQ-15
TEST_F(RequestsSiteTest, WrongBodiesAreRefused) {
  EXPECT_EQ(Ask("POST", kRequests, "{").status, 400);
  EXPECT_THAT(Ask("POST", kRequests, R"({"labels": ["a"], "colour": 1})").body, HasSubstr("colour"));
  net::HttpRequest request = Asking("POST", kRequests, R"({"labels": ["small"]})");
  request.headers["content-type"] = "application/x-www-form-urlencoded";
  EXPECT_EQ(Send(std::move(request)).status, 415);
  EXPECT_TRUE(Children("/nodepool/leases").empty());
}

// REQ-21
TEST_F(RequestsSiteTest, ChangesAreAudited) {
  std::string location = MakeHeld();
  std::string id = location.substr(location.rfind('/') + 1);
  Ask("DELETE", location);
  EXPECT_EQ(log_.Count("ci from 192.0.2.1: request " + id + ": made, 1 nodes"), 1);
  EXPECT_EQ(log_.Count("ci from 192.0.2.1: end request " + id + ": done"), 1);
  EXPECT_EQ(log_.Count("secret-of-ci"), 0);
}

TEST_F(RequestsSiteTest, WithoutZooKeeperTheClientShallTryAgain) {
  zk_.Disconnect(*running_->client);
  time_.Advance(seconds(1));
  EXPECT_EQ(Ask("POST", kRequests, R"({"labels": ["small"]})").status, 503);
  zk_.Reconnect(*running_->client);
}

// WHY-5
TEST_F(RequestsSiteTest, ALabelThatNoLauncherOffersIsRefusedAtOnce) {
  net::HttpRequest first = Asking("POST", kRequests, R"({"labels": ["rare"]})");
  first.headers["idempotency-key"] = "once";
  AddForeignPool([](Component& pool) { pool.supported_labels = {LabelName("rare")}; });
  time_.Advance(seconds(1));
  EXPECT_EQ(Send(first).status, 201);
  Response refused = Ask("POST", kRequests, R"({"labels": ["small", "smal"]})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("no launcher offers label smal; did you mean small?"));
  RemoveForeignPool("/nodepool/components/pool/elsewhere");
  time_.Advance(seconds(1));
  EXPECT_EQ(Send(first).status, 200) << "it was made when there was such a pool";
  EXPECT_EQ(Ask("POST", kRequests, R"({"labels": ["rare"]})").status, 409);
  Component starting;
  starting.hostname = "elsewhere";
  starting.state = ComponentState::kStopped;
  Put("/nodepool/components/launcher/elsewhere", ToJson(starting));
  time_.Advance(seconds(1));
  EXPECT_EQ(Ask("POST", kRequests, R"({"labels": ["rare"]})").status, 201) << "it may offer the label soon";
}

// REQ-26
TEST_F(RequestsSiteTest, TheListHasALimitAndFilters) {
  std::string held = MakeHeld();
  std::string second = MakeHeld(R"(["large"])");
  auto list = [&](const std::string& query) {
    Response response = Ask("GET", "/api/v1/leases" + query);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body).as_object();
  };
  EXPECT_EQ(list("").at("leases").as_array().size(), 2u);
  EXPECT_EQ(list("?limit=1").at("leases").as_array().size(), 1u);
  EXPECT_EQ(list("?limit=1").at("is_complete"), false);
  EXPECT_EQ(list("?limit=2").at("is_complete"), true);
  EXPECT_EQ(list("?label=large").at("leases").at(0).at("labels"), json::array({"large"}));
  EXPECT_EQ(list("?state=waiting").at("leases").as_array().size(), 0u);
  for (const char* bad : {"?limit=many", "?state=gone", "?colour=red"})
    EXPECT_EQ(Ask("GET", std::string("/api/v1/leases") + bad).status, 400) << bad;
}

}  // namespace

}  // namespace nodepool::web
