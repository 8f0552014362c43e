#include "web/api/api.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "async/testing/run_ready.h"
#include "base/metrics.h"
#include "base/text.h"
#include "launcher/launcher_fixture_for_test.h"
#include "web/api/open_api.h"
#include "web/launcher_site.h"
#include "web/lists/lists.h"

namespace nodepool::web {

namespace {

namespace json = boost::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// A launcher whose endpoints are called without a server.
class ApiTest : public launcher::LauncherTest {
 protected:
  void StartSite() {
    running_ = &StartLauncher();
    router_.emplace(LauncherEndpoints(time_.loop(), *running_->launcher, prometheus_, state_fault_, access_));
  }
  static net::HttpRequest Asking(const std::string& target, const char* type = "application/json") {
    net::HttpRequest request;
    request.headers["accept"] = type;
    EXPECT_TRUE(net::ParseTarget(target, request));
    return request;
  }
  // The lists, made with a pause after each entry.
  Router InPortions() {
    auto recent = std::make_shared<RecentAnswers>(time_.loop(), Pace::kEachStep);
    std::vector<Endpoint> endpoints = ApiEndpoints(*running_->launcher, recent);
    std::ranges::move(ListEndpoints(time_.loop(), *running_->launcher, recent),
                      std::back_inserter(endpoints));
    return Router(std::move(endpoints));
  }
  Response Ask(const std::string& target, std::string method = "GET",
               std::map<std::string, std::string> headers = {{"accept", "application/json"}}) {
    net::HttpRequest request;
    request.method = std::move(method);
    request.headers = std::move(headers);
    EXPECT_TRUE(net::ParseTarget(target, request));
    return time_.Run(router_->Answer(std::move(request)));
  }
  // The list of a resource, bypassing the response cache.
  json::array List(const std::string& resource, const std::string& query = "") {
    time_.Advance(std::chrono::seconds(2));
    Response response = Ask("/api/v1/" + resource + query);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.whole_body()).at(resource).as_array();
  }
  std::vector<std::string> Names(const std::string& resource, const std::string& query,
                                 const char* key = "id") {
    std::vector<std::string> names;
    for (const json::value& entry : List(resource, query)) names.emplace_back(entry.at(key).as_string());
    return names;
  }

  Running* running_ = nullptr;
  metrics::Prometheus prometheus_;
  std::string state_fault_;
  Access access_{time_.loop(), MatchOnPool(pool_)};
  std::optional<Router> router_;
};

// A contract with programs: keys and their order must not change by accident.
TEST_F(ApiTest, NodesAndRequests) {
  StartSite();
  RequestId request = Request({"small"});
  ASSERT_TRUE(AwaitState(request, RequestState::kFulfilled));
  NodeId node = NodesOf(request).at(0);
  json::array nodes = List("nodes");
  ASSERT_EQ(nodes.size(), 1u);
  json::object shown = nodes[0].as_object();
  for (const char* key : {"launcher", "connection_port", "state_age", "age"}) shown.stable_erase(key);
  EXPECT_EQ(
      json::serialize(shown),
      R"({"id":")" + node.value +
          R"(","state":"ready","is_locked":false,"provider":"cloud","pool":"main","labels":["small"],)"
          R"("allocated_to":")" +
          request.value +
          R"(","requestor":"test","tenant":null,"server_id":"i-1","hostname":null,"interface_ip":"192.0.2.1",)"
          R"("public_ipv4":null,"private_ipv4":null,"public_ipv6":null,"connection_type":null,"username":null,)"
          R"("cloud":null,"region":null,"az":null,"image":null,"resources":{"cores":2,"instances":1},)"
          R"("hold_job":null,"hold_expiration":null,"comment":null,"hourly_price":null,"user_data":null})");
  EXPECT_THAT(Names("requests", ""), ElementsAre(request.value));
  EXPECT_EQ(List("requests")[0].at("nodes"), json::array({node.value}));
}

TEST_F(ApiTest, AFailedRequestSaysWhyAlsoWhenItIsDeleted) {
  StartSite();
  RequestId request = Request({"smal"});
  ASSERT_TRUE(AwaitState(request, RequestState::kFailed));
  json::value failed = List("requests")[0];
  EXPECT_EQ(failed.at("decline_reasons"),
            json::array({"cloud main: it has no label smal; did you mean small?"}));
  EXPECT_FALSE(failed.at("is_deleted").as_bool());
  DeleteRequest(request);
  time_.Advance(std::chrono::seconds(2));
  json::value deleted = List("requests")[0];
  EXPECT_EQ(deleted.at("id").as_string(), request.value);
  EXPECT_EQ(deleted.at("state").as_string(), "failed");
  EXPECT_EQ(deleted.at("decline_reasons"), failed.at("decline_reasons"));
  EXPECT_TRUE(deleted.at("is_deleted").as_bool());
}

TEST_F(ApiTest, QueriesSelectEntries) {
  StartSite();
  auto held = [&](std::string label, std::string provider) {
    return AddNode(NodeState::kHold,
                   [&](Node& node) {
                     node.type = {LabelName(label)};
                     node.provider = ProviderName(provider);
                   })
        .value;
  };
  std::string a = held("small", "cloud"), b = held("large", "cloud"), c = held("large", "elsewhere");
  EXPECT_THAT(Names("nodes", ""), ElementsAre(a, b, c));
  EXPECT_THAT(Names("nodes", "?label=large"), ElementsAre(b, c));
  EXPECT_THAT(Names("nodes", "?label=large&provider=cloud"), ElementsAre(b));
  EXPECT_THAT(Names("nodes", "?label=large&label=small&provider=cloud"), ElementsAre(a, b));
  EXPECT_THAT(Names("nodes", "?state=ready"), IsEmpty());
  EXPECT_THAT(Names("nodes", "?state=&limit="), ElementsAre(a, b, c));
  EXPECT_THAT(Names("nodes", "?limit=2"), ElementsAre(a, b));
  EXPECT_THAT(Ask("/api/v1/nodes?limit=2").whole_body(), HasSubstr(R"("is_complete":false})"));
  EXPECT_THAT(Ask("/api/v1/nodes?limit=3").whole_body(), HasSubstr(R"("is_complete":true})"));
  EXPECT_THAT(Names("nodes", "?after=" + a + "&limit=1"), ElementsAre(b));
  EXPECT_THAT(Names("nodes", "?after=" + a + "&label=small"), IsEmpty());
  EXPECT_THAT(Names("nodes", "?after=" + b), ElementsAre(c)) << "answers of two pages are not mixed up";
  EXPECT_THAT(Names("nodes", "?after=" + c), IsEmpty());
  EXPECT_THAT(Names("providers", "?label=large", "name"), ElementsAre("cloud"));
  EXPECT_THAT(Names("providers", "?provider=unknown", "name"), IsEmpty());
  EXPECT_THAT(Names("components", "?label=small", "kind"), ElementsAre("pool"));
  EXPECT_THAT(Names("components", "?state=running", "kind"), ElementsAre("launcher", "pool"));
}

TEST_F(ApiTest, AnAnswerInPortionsIsTheSame) {
  StartSite();
  for (int i = 0; i < 9; ++i) {
    AddNode(NodeState::kHold, [&](Node& node) { node.type = {LabelName(i % 3 == 0 ? "large" : "small")}; });
    Request({"small"});
  }
  time_.Advance(std::chrono::seconds(2));
  Router portions = InPortions();
  for (std::string target :
       {"/api/v1/nodes", "/api/v1/nodes?limit=4", "/api/v1/nodes?label=large",
        "/api/v1/nodes?label=large&limit=2", "/api/v1/nodes?label=large&limit=3", "/api/v1/nodes?state=ready",
        "/api/v1/nodes?limit=0&state=hold", "/api/v1/requests", "/api/v1/requests?limit=3",
        "/api/v1/components", "/api/v1/providers", "/node-list", "/request-list", "/label-list"}) {
    for (const char* type : {"application/json", "text/plain"}) {
      std::string whole = Ask(target, "GET", {{"accept", type}}).whole_body();
      EXPECT_EQ(time_.Run(portions.Answer(Asking(target, type))).whole_body(), whole) << target;
    }
  }
}

TEST_F(ApiTest, ZooKeeperIsLostDuringAnAnswer) {
  StartSite();
  for (int i = 0; i < 9; ++i) {
    AddNode(NodeState::kHold);
    Request({"small"});
  }
  time_.Advance(std::chrono::seconds(2));
  Router portions = InPortions();
  for (const char* target : {"/api/v1/nodes", "/api/v1/nodes?state=hold", "/node-list", "/request-list"}) {
    int status = 0;
    boost::asio::co_spawn(time_.loop().context(), portions.Answer(Asking(target)),
                          [&](const std::exception_ptr&, Response response) { status = response.status; });
    ASSERT_EQ(time_.loop().context().poll_one(), 1u);
    zk_.Disconnect(*running_->client);
    testing::RunReady(time_.loop());
    EXPECT_EQ(status, 503) << target;
    zk_.Reconnect(*running_->client);
    ASSERT_TRUE(Await([&] { return running_->launcher->records().synced(); }));
  }
}

TEST_F(ApiTest, UnknownParametersAreNamed) {
  StartSite();
  auto refusal = [&](const std::string& target) {
    Response response = Ask(target);
    EXPECT_EQ(response.status, 400) << target;
    return std::string(json::parse(response.body).at("message").as_string());
  };
  EXPECT_EQ(refusal("/api/v1/nodes?colour=red"),
            "There is no parameter \"colour\" here; there is state, label, provider, after, limit.");
  EXPECT_EQ(refusal("/api/v1/images?state=ready"),
            "There is no parameter \"state\" here; there is provider, limit.");
  EXPECT_EQ(refusal("/api/v1/requests?state=bogus"),
            "state is requested, pending, fulfilled, failed, not bogus.");
  EXPECT_EQ(refusal("/api/v1/nodes?limit=-1"), "limit is a number.");
  EXPECT_EQ(refusal("/api/v1/nodes?limit=1x"), "limit is a number.");
}

TEST_F(ApiTest, Images) {
  StartSite();
  Put("/nodepool/images/deb-12/builds/b1", R"({"state": "ready", "state_time": 1, "formats": "raw,qcow2"})");
  Put("/nodepool/images/deb-12/builds/b2", R"({"state": "building", "state_time": 2, "builder": "nb01"})");
  Put("/nodepool/images/deb-12/builds/b1/providers/cloud/images/0000000001",
      R"({"state": "ready", "state_time": 3, "progress": "sending the file, 40 %", "external_id": "x", "external_name": "n", "format": "raw"})");
  Put("/nodepool/images/deb-12/pause", "");
  json::object image = List("images").at(0).as_object();
  image.stable_erase("newest_ready_build_age");
  EXPECT_EQ(json::serialize(image),
            R"({"name":"deb-12","is_paused":true,"build_request":null,"build_request_age":null,)"
            R"("builds":{"building":1,"ready":1},"newest_ready_build":"b1","next_build":null,)"
            R"("last_build":{"id":"b2","state":"building","since":2E0,"error":null},"missing_in":[],)"
            R"("ready_in":["cloud"]})");
  EXPECT_THAT(Names("images", "?provider=cloud", "name"), ElementsAre("deb-12"));
  EXPECT_THAT(Names("images", "?provider=other", "name"), IsEmpty());
  json::object build = List("builds", "?state=ready").at(0).as_object();
  build.stable_erase("state_age");
  EXPECT_EQ(
      json::serialize(build),
      R"({"id":"b1","image":"deb-12","state":"ready","builder":null,"formats":["qcow2","raw"],"error":null})");
  json::object upload = List("uploads").at(0).as_object();
  upload.stable_erase("state_age");
  EXPECT_EQ(
      json::serialize(upload),
      R"({"id":"0000000001","image":"deb-12","build":"b1","provider":"cloud","state":"ready",)"
      R"("format":"raw","external_name":"n","external_id":"x","progress":"sending the file, 40 %","error":null})");
}

TEST_F(ApiTest, AnImageThatIsNotBuiltSaysWhy) {
  config_->common.diskimages[ImageName("never")];
  StartSite();
  Put("/nodepool/images/deb/builds/b1",
      R"({"state": "failed", "state_time": 5.5, "error": "dib ended with 1: no space"})");
  json::array images = List("images");
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(json::serialize(images[0].at("last_build")),
            R"({"id":"b1","state":"failed","since":5.5E0,"error":"dib ended with 1: no space"})");
  EXPECT_EQ(images[1].at("name"), "never") << "it is configured";
  EXPECT_TRUE(images[1].at("last_build").is_null());
  EXPECT_EQ(List("builds").at(0).at("error"), "dib ended with 1: no space");
}

TEST_F(ApiTest, TheEndOfABuildsLog) {
  std::string folder = ::testing::TempDir() + "nodepool-build-log-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder + "/logs");
  config_->common.build_log_dir = folder + "/logs";
  std::ofstream(folder + "/logs/deb-b1.log") << "first\n" << std::string(70'000, 'x') << "\nExit code: 1\n";
  std::ofstream(folder + "/secret.log") << "secret";
  StartSite();
  Put("/nodepool/images/deb/builds/b1", R"({"state": "failed", "builder": "nb01.example.org"})");
  Put("/nodepool/images/deb/builds/b2", R"({"state": "failed", "builder": "nb02.example.org"})");
  Response log = Ask("/api/v1/images/deb/builds/b1/log");
  EXPECT_EQ(log.status, 200);
  EXPECT_EQ(log.content_type, "text/plain; charset=UTF-8");
  EXPECT_EQ(log.body, "Exit code: 1\n") << "the last 64 KiB, from a line's beginning on";
  Response elsewhere = Ask("/api/v1/images/deb/builds/b2/log");
  EXPECT_EQ(elsewhere.status, 404);
  EXPECT_THAT(elsewhere.body, HasSubstr("The log of build deb-b2 is on nb02.example.org, in " + folder +
                                        "/logs/deb-b2.log, and cannot be read here."));
  EXPECT_EQ(Ask("/api/v1/images/deb/builds/b3/log").status, 404);
  // Nothing but names of records leads to a file, and no link does.
  for (const char* path : {"/api/v1/images/../builds/secret/log", "/api/v1/images/..%2Fsecret/builds/b1/log",
                           "/api/v1/images/deb/builds/..%2F..%2Fsecret/log",
                           "/api/v1/images/%2E%2E/builds/b1/log", "/api/v1/images/deb/builds/b1%00/log"}) {
    EXPECT_EQ(Ask(path).status, 404) << path;
  }
  std::filesystem::create_symlink(folder + "/secret.log", folder + "/logs/deb-b2.log");
  EXPECT_EQ(Ask("/api/v1/images/deb/builds/b2/log").status, 404);
  std::filesystem::remove_all(folder);
}

TEST_F(ApiTest, TheNextBuildOfAnImage) {
  ImageName name("deb-12");
  config_->common.diskimages[name].rebuild_age = std::chrono::seconds(100);
  StartSite();
  Put("/nodepool/images/deb-12/builds/b1", R"({"state": "ready", "state_time": 1000})");
  Put("/nodepool/images/deb-12/builds/b2", R"({"state": "ready", "state_time": 2000})");
  Put("/nodepool/images/deb-12/builds/b3", R"({"state": "failed", "state_time": 3000})");
  Put("/nodepool/images/other/builds/b1", R"({"state": "ready", "state_time": 1000})");
  json::array images = List("images");
  EXPECT_EQ(images.at(0).at("next_build"), 2100.0);
  EXPECT_TRUE(images.at(1).at("next_build").is_null()) << "not configured";
  Put("/nodepool/images/deb-12/pause", "");
  EXPECT_TRUE(List("images").at(0).at("next_build").is_null());
}

// D-30: a provider is shown even while it cannot be started.
TEST_F(ApiTest, Providers) {
  AddPool("broken", "main", {"other"}).max_servers = 3;
  script("broken").start_error = [](int) { return Error(Verdict::kRetry, "no route to the cloud"); };
  AddPool("cloud", "main", {"small"}).max_servers = 5;
  script().available = driver::QuotaInformation::Limit({{"cores", 8}, {"ram", 1024.5}});
  StartSite();
  RequestId request = Request({"small"});
  ASSERT_TRUE(AwaitState(request, RequestState::kFulfilled));
  json::array providers = List("providers");
  ASSERT_EQ(providers.size(), 2u);
  const json::object& broken = providers[0].as_object();
  EXPECT_EQ(broken.at("state"), "failing");
  EXPECT_EQ(broken.at("is_up"), false);
  EXPECT_EQ(broken.at("fault"), "no route to the cloud");
  EXPECT_TRUE(broken.at("next_start").is_int64());
  EXPECT_EQ(broken.at("pools"), json::array());
  json::object cloud = providers[1].as_object();
  cloud.at("pools").at(0).as_object().stable_erase("launcher");
  EXPECT_TRUE(cloud.at("state_age").is_int64());
  cloud.stable_erase("state_age");
  EXPECT_EQ(
      json::serialize(cloud),
      R"({"name":"cloud","launchers":["np01"],"is_own":true,"driver":"scripted","state":"up","is_up":true,"fault":null,)"
      R"("notices":[],"api_rates":[],"next_start":null,"is_draining":false,)"
      R"("pause":null,"breakers":[],"max_concurrency":null,"launches":0,"limit":{"cores":8,"ram":1.0245E3},"used":{"cores":2,"instances":1},)"
      R"("reserved":{},"nodes":{"ready":1},"labels":["small"],"pools":[{"name":"main","is_registered":true,)"
      R"("is_draining":false,"is_waiting":false,"priority":100,"requests":0,"limit":{"instances":5},)"
      R"("used":{"cores":2,"instances":1},"reserved":{},"nodes":{"ready":1},"labels":[{"name":"small","is_available":true,)"
      R"("free_nodes":0,"fault":null}]}]})");
}

// BRK-13
TEST_F(ApiTest, OpenBreakers) {
  StartSite();
  Put("/nodepool/breakers/cloud:main:small",
      R"({"kind": "key-scan", "kinds": "key-scan 3", "failures": 3, "attempts": 4, "said": "no answer", )"
      R"("opened": 1700000000, "next_probe": 1700003600, "failed_probes": 1, "tried_anyway": 2})");
  Put("/nodepool/breakers/elsewhere", "{}");
  json::array breakers = List("breakers");
  ASSERT_EQ(breakers.size(), 2u);
  EXPECT_EQ(
      json::serialize(breakers[0]),
      R"({"provider":"cloud","pool":"main","label":"small","state":"open","kind":"key-scan","failures":3,"attempts":4,)"
      R"("said":"no answer","evidence":"3 of 4 launches failed (key-scan 3), the last one: no answer",)"
      R"("opened":1.7E9,"next_probe":1.7000036E9,"failed_probes":1,"good_probes":0,"relapses":0,"tried_anyway":2})");
  EXPECT_TRUE(breakers[1].at("pool").is_null());
  EXPECT_EQ(List("providers")[0].at("breakers").as_array().size(), 1u);
  EXPECT_EQ(List("problems")[0].at("kind"), "breaker-open");
}

// RUN-73, RUN-42
TEST_F(ApiTest, RunnersAndTheirJobs) {
  StartSite();
  Put("/nodepool/runners/sets/octo/small",
      R"({"state": "fault", "fault": "they get no jobs: status 401", "remedy": "Correct the token", "waiting": 1, )"
      R"("why": "new runners are held back", "jobs": [{"request": 7, "repository": "octo/app", "job": "a\u001b<b>", )"
      R"("queued_time": 1700000000}]})");
  Put("/nodepool/runners/runs/00000001",
      R"({"state": "wanted", "service": "octo", "set": "small", "runner_name": "np-1", "created_time": 1700000001})");
  json::array sets = List("runners");
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].at("set"), "octo/small");
  EXPECT_EQ(sets[0].at("starting"), 1);
  EXPECT_EQ(sets[0].at("remedy"), "Correct the token");
  json::array jobs = List("runner_jobs");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].at("id"), "waiting-7");
  EXPECT_EQ(jobs[0].at("job"), "a\x1b<b>");
  EXPECT_EQ(jobs[0].at("why"), "new runners are held back");
  EXPECT_EQ(jobs[1].at("why"), "a node is requested");
  EXPECT_EQ(jobs[1].at("wanted_at").to_number<double>(), 1'700'000'001);
  EXPECT_EQ(List("runner_jobs", "?state=wanted").size(), 1u);
  EXPECT_EQ(List("problems")[0].at("kind"), "runners-fault");
}

// D-64
TEST_F(ApiTest, ReadyOnceEveryProviderHasStarted) {
  AddPool("slow", "main", {"other"});
  script("slow").start_error = [](int start) -> std::optional<Error> {
    return start < 2 ? std::optional(Error(Verdict::kRetry, "no route to the cloud")) : std::nullopt;
  };
  StartSite();
  for (int start = 1; start <= 2; ++start) {
    ASSERT_EQ(script("slow").starts, start);
    Response early = Ask("/ready", "GET", {});
    EXPECT_EQ(early.status, 503);
    EXPECT_THAT(early.body, HasSubstr("slow"));
    ASSERT_TRUE(Await([&] { return script("slow").starts > start; }));
  }
  Response ready = Ask("/ready", "GET", {});
  EXPECT_EQ(ready.status, 200);
  EXPECT_EQ(ready.body, "OK");
}

TEST_F(ApiTest, NotReadyWhileTheEmbeddedServerCannotWriteItsState) {
  StartSite();
  ASSERT_EQ(Ask("/ready", "GET", {}).status, 200);
  state_fault_ = "database or disk is full";
  Response response = Ask("/ready", "GET", {});
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("cannot write its state: database or disk is full"));
  state_fault_.clear();
  EXPECT_EQ(Ask("/ready", "GET", {}).status, 200);
}

TEST_F(ApiTest, Components) {
  StartSite();
  AddForeignPool([](Component& pool) { pool.supported_labels = {LabelName("rare")}; });
  EXPECT_THAT(Names("components", "?provider=other", "hostname"), ElementsAre("elsewhere"));
  json::object pool = List("components", "?label=rare").at(0).as_object();
  EXPECT_EQ(
      json::serialize(pool),
      R"({"path":"pool/elsewhere","kind":"pool","hostname":"elsewhere","state":"running","version":null,)"
      R"("launcher":"elsewhere-PoolWorker.other-main-0","provider":"other","pool":"main","labels":["rare"],)"
      R"("priority":100,"is_paused":false})");
}

TEST_F(ApiTest, ZooKeeperIsNotRead) {
  StartSite();
  AddNode(NodeState::kHold);
  time_.Advance(std::chrono::seconds(5));
  auto before = zk_.counters(*running_->client);
  for (const char* resource :
       {"nodes", "requests", "images", "builds", "uploads", "providers", "components"}) {
    EXPECT_EQ(Ask(std::string("/api/v1/") + resource).status, 200);
  }
  auto after = zk_.counters(*running_->client);
  EXPECT_EQ(before.reads, after.reads);
  EXPECT_EQ(before.writes, after.writes);
}

// operations.6.6
TEST_F(ApiTest, HeadersAndMethods) {
  StartSite();
  time_.Advance(std::chrono::seconds(2));
  Response response = Ask("/api/v1/nodes");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_THAT(response.headers, Contains(Pair("Access-Control-Allow-Origin", "*")));
  EXPECT_THAT(response.headers, Contains(Pair("Cache-Control", "max-age=1, public")));
  std::string made;
  for (const auto& [name, value] : response.headers) {
    if (name == "Last-Modified") made = value;
  }
  EXPECT_EQ(Ask("/api/v1/nodes", "GET", {{"if-modified-since", made}}).status, 304);
  AddNode(NodeState::kHold);
  EXPECT_EQ(Ask("/api/v1/nodes").shared_body, response.shared_body) << "given again for a second";
  EXPECT_NE(Ask("/api/v1/nodes?limit=5").whole_body(), response.whole_body()) << "another query";
  EXPECT_EQ(Ask("/api/v1/nodes", "HEAD").status, 200);
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    Response refused = Ask("/api/v1/nodes", method);
    EXPECT_EQ(refused.status, 405);
    EXPECT_THAT(refused.headers, Contains(Pair("Allow", "GET, HEAD")));
  }
  EXPECT_EQ(Ask("/api/v1/nodes/").status, 404);
  EXPECT_EQ(Ask("/api/v1").status, 404);
}

TEST_F(ApiTest, WithoutZooKeeperOnlyProvidersAreKnown) {
  StartSite();
  zk_.Disconnect(*running_->client);
  time_.Advance(std::chrono::seconds(2));
  EXPECT_EQ(Ask("/api/v1/providers").status, 200);
  for (const char* resource : {"nodes", "requests", "images", "builds", "uploads", "components"}) {
    EXPECT_EQ(Ask(std::string("/api/v1/") + resource).status, 503) << resource;
  }
  zk_.Reconnect(*running_->client);
}

TEST_F(ApiTest, TheDocumentDescribesTheEndpoints) {
  StartSite();
  std::vector<Endpoint> endpoints =
      LauncherEndpoints(time_.loop(), *running_->launcher, prometheus_, state_fault_, access_);
  json::value document = json::parse(Ask("/api/v1/openapi.json").whole_body());
  std::size_t operations = 0;
  for (const auto& [path, methods] : document.at("paths").as_object()) {
    operations += methods.as_object().size();
    EXPECT_THAT(Ask(path).whole_body(), Not(HasSubstr("There is nothing at"))) << path;
  }
  EXPECT_EQ(operations, endpoints.size());
  for (const Endpoint& endpoint : endpoints) {
    const json::object* methods = document.at("paths").as_object().at(endpoint.path).if_object();
    ASSERT_NE(methods, nullptr) << endpoint.path;
    EXPECT_TRUE(methods->contains(Lower(endpoint.method))) << endpoint.path;
    EXPECT_FALSE(endpoint.doc.summary.empty()) << endpoint.path;
  }
}

}  // namespace

}  // namespace nodepool::web
