#include <boost/json/parse.hpp>

#include "async/loop.h"
#include "async/task_group.h"
#include "drivers/kubernetes/api/object.h"
#include "drivers/kubernetes/kubernetes_fixture_for_test.h"
#include "net/http/http_client.h"
#include "net/http/http_server.h"

namespace nodepool::drivers::kubernetes {

// Watches that many launches share, and that break; an API server that does not answer.
// Watches over the real HTTP client and a real connection.

namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// K8S-45: the number of calls does not depend on how long pods take, and there is one watch of each kind.
TEST_F(KubernetesTest, AHundredPodsAtOnce) {
  imposter.pod_starts = 60s;
  Start();
  TaskGroup tasks(time.loop(), log::Logger("test"));
  std::vector<Node> made(100);
  std::vector<NodeId> ids(100);
  SteadyTime begun = time.loop().SteadyNow();
  for (std::size_t i = 0; i < made.size(); ++i) tasks.Spawn("launch", LaunchNode(made[i], ids[i]));
  time.Run(tasks.Join(), 10min);
  EXPECT_LT(time.loop().SteadyNow() - begun, 62s) << "within a second of the pods' start";
  EXPECT_THAT(results, Each("ready"));
  EXPECT_EQ(results.size(), 100u);
  EXPECT_LE(imposter.calls().size(), 7u * 100 + 6);
  EXPECT_EQ(imposter.Count("GET", "/api/v1/pods"), 2) << "a list and a watch";
}

// K8S-59
TEST_F(KubernetesTest, WatchesThatBreakLoseNoLaunch) {
  imposter.pod_starts = 30s;
  Start();
  auto trouble = [](Loop& loop, nodepool::testing::KubernetesImposter& imposter) -> Task<> {
    co_await loop.SleepFor(2s);
    imposter.CutWatches();
    co_await loop.SleepFor(5s);
    imposter.DropVersions(false);
    imposter.CutWatches();
    co_await loop.SleepFor(5s);
    imposter.DropVersions(true);
    imposter.CutWatches();
  };
  TaskGroup tasks(time.loop(), log::Logger("test"));
  tasks.Spawn("trouble", trouble(time.loop(), imposter));
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
  time.Run(tasks.Join());
  // A list, a watch, one more watch after the cut, and twice watch, list and watch.
  EXPECT_LE(imposter.Count("GET", "/api/v1/pods"), 9);
  imposter.ClearCalls();
  time.Advance(1h);
  EXPECT_LE(imposter.Count("GET", "/api/v1/pods"), 13) << "a watch lasts five minutes";
}

// K8S-97
TEST_F(KubernetesTest, VersionsThatGoBackAreNoticedAtOnce) {
  imposter.RestoreAt(500'000);
  Start();
  Launch();
  imposter.objects.erase("/api/v1/namespaces/" + Namespace() + "/pods/pod-small");
  imposter.RestoreAt(100);
  std::vector<boost::json::value> ids = {last.external_id};
  SteadyTime begun = time.loop().SteadyNow();
  Launch();
  Delete();
  EXPECT_LT(time.loop().SteadyNow() - begun, 5s);
  EXPECT_THAT(results, ElementsAre("ready", "ready"));
  EXPECT_EQ(time.Run(adapter->MissingMachines(ids)), ids) << "what the backup does not have is gone";
}

// K8S-97: a cut alone is no reason to list thousands of objects.
TEST_F(KubernetesTest, ASilentWatchIsFollowedByAList) {
  imposter.RestoreAt(500'000);
  imposter.page_size = 100;
  for (int i = 0; i < 501; ++i) {
    boost::json::object labels = {{"nodepool_provider_name", "cluster"}};
    imposter.Put(fmt::format("/api/v1/namespaces/other/pods/{}", i),
                 {{"metadata", boost::json::object{{"labels", std::move(labels)}}}});
  }
  Start();
  Launch();
  imposter.RestoreAt(100);
  imposter.ClearCalls();
  SteadyTime begun = time.loop().SteadyNow();
  Launch();
  EXPECT_THAT(results, ElementsAre("ready", "ready"));
  EXPECT_GT(time.loop().SteadyNow() - begun, 90s);
  EXPECT_LT(time.loop().SteadyNow() - begun, 110s);
  EXPECT_EQ(imposter.Count("GET", "/api/v1/pods"), 7) << "a silent watch, a list of six pages";
}

// K8S-100
TEST_F(KubernetesTest, AWatchHasTheBoundsOfAList) {
  driver::cloud::Framework framework;
  Cloud cloud({{time.loop(), random, blocking_pool}, framework, this}, config,
              MeansFor(time.loop(), imposter, connection));
  std::unique_ptr<ObjectCache> cache = cloud.watches.NewCache({kNamespaces, "", {}, "", 64 << 10});
  cloud.watches.Start(*cache);
  time.Run(cache->WaitForFirstList());
  log::Capture log;
  auto path = [](int i) { return fmt::format("/api/v1/namespaces/many-{}", i); };
  for (int i = 0; i < 60; ++i) imposter.Put(path(i), {});
  for (int i = 0; i < 1000; ++i) imposter.Put(path(0), {});
  time.Advance(1s);
  EXPECT_EQ(cache->objects().size(), 60u) << "changes of what is known are no growth";
  EXPECT_EQ(log.Count("there is no end of new objects"), 0);
  for (int i = 60; i < 500; ++i) imposter.Put(path(i), {});
  time.Advance(1s);
  EXPECT_EQ(cache->objects().size(), 65u);
  EXPECT_EQ(log.Count("there is no end of new objects: 65, of 65 KiB"), 1);
  for (int i = 30; i < 500; ++i) imposter.Remove(path(i));
  imposter.ClearCalls();
  time.Advance(29s);
  EXPECT_EQ(imposter.calls().size(), 0u) << "no busy loop";
  time.Advance(5s);
  EXPECT_EQ(cache->objects().size(), 30u) << "with a list it goes on";
  time.Run(cloud.watches.Stop());
}

// driver-kubernetes.md 4.3
TEST_F(KubernetesTest, AListWhosePagesExpireBeginsAgain) {
  Start();
  for (int i = 0; i < 5; ++i) {
    boost::json::object labels = {{"nodepool_provider_name", "cluster"}, {"nodepool_node_id", "0000000099"}};
    imposter.Put(fmt::format("/api/v1/namespaces/main-{}", i),
                 {{"metadata", boost::json::object{{"labels", std::move(labels)}}}});
  }
  imposter.page_size = 2;
  imposter.pages_that_expire = 1;
  EXPECT_EQ(time.Run(adapter->ListInstances()).size(), 5u);
  imposter.pages_that_expire = 1000;
  EXPECT_THROW(time.Run(adapter->ListInstances()), driver::cloud::api::ApiError)
      << "it is not repeated for ever";
}

// K8S-98: neither list nor watch works, the pod runs all the same.
TEST_F(KubernetesTest, APodIsReadOnceBeforeItsTimeIsUp) {
  Start();
  imposter.Add({.method = "GET", .path = "/api/v1/pods", .status = 500, .times = 10'000});
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_EQ(last.host_id, "node-1");
  EXPECT_EQ(imposter.Count("GET", "/api/v1/namespaces/" + Namespace() + "/pods/pod-small"), 1);
}

TEST_F(KubernetesTest, APodThatIsDeletedWhileAWatchIsLostEndsItsLaunch) {
  imposter.pod_becomes = "";
  config->launch_retries = 1;
  Start();
  auto trouble = [](Loop& loop, nodepool::testing::KubernetesImposter& imposter) -> Task<> {
    co_await loop.SleepFor(3s);
    imposter.Remove("/api/v1/namespaces/" + imposter.Namespaces().at(0) + "/pods/pod-small");
  };
  TaskGroup tasks(time.loop(), log::Logger("test"));
  tasks.Spawn("trouble", trouble(time.loop(), imposter));
  EXPECT_THAT(LaunchFails(), HasSubstr("was deleted while it started"));
  time.Run(tasks.Join());
}

// K8S-60
TEST_F(KubernetesTest, ASilentServerDoesNotHoldUpTheStop) {
  Start();
  imposter.is_silent = true;
  config->launch_retries = 1;
  LaunchFails();
  SteadyTime begun = time.loop().SteadyNow();
  time.Run(provider->Stop());
  provider.reset();
  EXPECT_LT(time.loop().SteadyNow() - begun, 1s);
}

// K8S-40
TEST_F(KubernetesTest, CredentialsAreReadAgainAfterARefusal) {
  imposter.token = "own token";
  Start();
  Launch();
  imposter.token = "rotated";
  connection.user.token = "rotated";
  Launch();
  EXPECT_THAT(results, ElementsAre("ready", "ready"));
}

// K8S-38
TEST_F(KubernetesTest, ARefusedTokenIsAFaultOfTheProvider) {
  imposter.token = "another";
  Start();
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults.back(), HasSubstr("401 Unauthorized"));
  connection.user.token = "another";
  time.Advance(1min);
  EXPECT_EQ(faults.back(), "");
}

class WatchOverHttpTest : public KubernetesTest {
 protected:
  void SetUp() override {
    KubernetesTest::SetUp();
    server_.Listen("127.0.0.1", 0);
    connection.server = "http://127.0.0.1:" + std::to_string(server_.port());
    Means means = MeansFor(loop_, imposter, connection);
    means.http = std::make_unique<net::CurlClient>(loop_, pool_, "nodepool/test");
    driver::cloud::AdapterEnvironment environment{{loop_, random, pool_}, framework_, this};
    cloud_ = std::make_unique<Cloud>(std::move(environment), config, std::move(means));
  }
  void TearDown() override {
    RunToEnd(loop_, cloud_->watches.Stop());
    cloud_.reset();
    RunToEnd(loop_, server_.Stop());
    KubernetesTest::TearDown();
  }

  static std::string Line(const std::string& name, std::size_t padding) {
    return R"({"type":"ADDED","object":{"metadata":{"name":")" + name + R"(","annotations":{"a":")" +
           std::string(padding, 'x') + "\"}}}}\n";
  }
  // The objects that a watch brings.
  std::vector<std::string> Watch() {
    std::vector<std::string> names;
    auto on_event = [&names](const WatchEvent& event) { names.push_back(event.object.name); };
    RunToEnd(loop_, cloud_->cluster.Watch("/api/v1/pods?watch=true", std::chrono::seconds(60), on_event));
    return names;
  }
  std::string WatchFails() {
    try {
      Watch();
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kFail);
      return error.message();
    }
    ADD_FAILURE() << "the watch ended as usual";
    return "";
  }

  driver::cloud::Framework framework_;
  Loop loop_;
  BlockingPool pool_{1};  // ends before the loop, which its thread reports to
  std::string answer_;
  net::HttpServer server_{loop_, [this](net::HttpRequest) { return Answer(answer_); }};
  std::unique_ptr<Cloud> cloud_;

 private:
  static Task<net::HttpResponse> Answer(std::string body) {
    net::HttpResponse response;
    response.body = std::move(body);
    co_return response;
  }
};

// Large events are read elsewhere, and stay where they were among the others.
TEST_F(WatchOverHttpTest, EventsComeInTheirOrder) {
  answer_ = Line("a", 1) + Line("b", 3 << 20) + Line("c", 1) + Line("d", 100'000) + Line("e", 10);
  EXPECT_THAT(Watch(), ElementsAre("a", "b", "c", "d", "e"));
}

// K8S-100
TEST_F(WatchOverHttpTest, ALineWithoutEndIsRefused) {
  answer_ = Line("a", 1) + std::string(5 << 20, 'x');
  EXPECT_THAT(WatchFails(), HasSubstr("a line of the answer is longer than 4096 KiB"));
}

// Deletion of nodes of the driver kubernetes, and of what was left behind.

namespace json = boost::json;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// K8S-68, K8S-72
TEST_F(KubernetesTest, DeletionEndsOwnPodsFirst) {
  Start();
  Launch();
  imposter.ClearCalls();
  Delete();
  EXPECT_THAT(imposter.Namespaces(), IsEmpty());
  ASSERT_EQ(imposter.calls().size(), 2u);
  EXPECT_EQ(imposter.calls()[0].path, "/api/v1/namespaces/" + Namespace() + "/pods/pod-small");
  EXPECT_EQ(imposter.calls()[0].body.at("gracePeriodSeconds"), 1);
  EXPECT_EQ(imposter.calls()[1].path, "/api/v1/namespaces/" + Namespace());
  EXPECT_EQ(imposter.calls()[1].body.at("propagationPolicy"), "Background");
}

TEST_F(KubernetesTest, APodOfACustomSpecHasItsOwnGrace) {
  label->spec = {{"containers", json::array{json::object{{"name", "mine"}, {"image", "x"}}}}};
  Start();
  Launch();
  imposter.ClearCalls();
  Delete();
  EXPECT_EQ(imposter.calls().size(), 1u);
}

// K8S-69
TEST_F(KubernetesTest, ANamespaceThatIsGoneIsDeleted) {
  Start();
  Launch();
  imposter.Remove("/api/v1/namespaces/" + Namespace());
  Delete();
}

// K8S-70
TEST_F(KubernetesTest, ANamespaceThatStaysIsReportedWithWhatHoldsIt) {
  Start();
  Launch();
  std::string held = Namespace();
  Node node = last;
  NodeId id = last_id;
  imposter.held_namespaces = {held};
  log::Capture log;
  TaskGroup tasks(time.loop(), log::Logger("test"));
  bool is_deleted = false;
  auto remove = [](driver::Provider& from, NodeId which, Node record, bool& done) -> Task<> {
    co_await from.DeleteResources(which, record);
    done = true;
  };
  tasks.Spawn("delete", remove(*provider, id, node, is_deleted));
  time.Advance(400s);
  EXPECT_FALSE(is_deleted);
  int reports = 0;
  for (const log::Record& record : log.records())
    reports += record.text.find("finalizer example.com/held") != std::string::npos;
  EXPECT_EQ(reports, 6);
  Launch();
  Delete();
  EXPECT_THAT(imposter.Namespaces(), ElementsAre(held)) << "others are not affected";
  imposter.held_namespaces.clear();
  time.Advance(2s);
  EXPECT_TRUE(is_deleted);
  time.Run(tasks.Stop());
}

// K8S-71
TEST_F(KubernetesTest, ADeletionFailsWhileTheServerIsSilent) {
  Start();
  Launch();
  imposter.is_silent = true;
  EXPECT_THROW(Delete(), Error);
  EXPECT_THAT(imposter.Namespaces(), ElementsAre(Namespace()));
  imposter.is_silent = false;
  Delete();
  EXPECT_THAT(imposter.Namespaces(), IsEmpty());
}

// K8S-73, K8S-74, K8S-75, K8S-76
TEST_F(KubernetesTest, LeakedNamespacesAreDeletedByTheirLabels) {
  auto labelled = [](const char* provider, const char* pool, const char* node) -> json::object {
    json::object labels = {{"nodepool_provider_name", provider}, {"nodepool_pool_name", pool}};
    if (*node != 0) labels["nodepool_node_id"] = node;
    return {{"metadata", json::object{{"labels", std::move(labels)}}}};
  };
  Start();
  imposter.Put("/api/v1/namespaces/main-0000000007", labelled("cluster", "main", "0000000007"));
  imposter.Put("/api/v1/namespaces/removed-0000000008", labelled("cluster", "removed", "0000000008"));
  imposter.Put("/api/v1/namespaces/main-0000000009", labelled("another", "main", "0000000009"));
  imposter.Put("/api/v1/namespaces/main-0000000010", labelled("cluster", "main", ""));
  imposter.Put("/api/v1/namespaces/main-5", {});
  Launch();
  time.Run(provider->CleanupLeakedResources());
  EXPECT_THAT(leaks, IsEmpty()) << "once is not enough";
  time.Run(provider->CleanupLeakedResources());
  EXPECT_THAT(leaks, ElementsAre("2 nodes"));
  EXPECT_THAT(imposter.Namespaces(),
              ElementsAre(Namespace(), "main-0000000009", "main-0000000010", "main-5"));
}

// driver-kubernetes.md 13
TEST_F(KubernetesTest, ANodeWhosePodIsGoneIsMissing) {
  Start();
  Launch();
  std::vector<json::value> ids = {last.external_id};
  EXPECT_THAT(time.Run(adapter->MissingMachines(ids)), IsEmpty());
  imposter.SetPodStatus(Namespace(), "pod-small", {{"phase", "Failed"}, {"reason", "Evicted"}});
  time.Advance(1min);
  EXPECT_EQ(time.Run(adapter->MissingMachines(ids)), ids);
  imposter.SetPodStatus(Namespace(), "pod-small", {{"phase", "Running"}});
  time.Advance(1min);
  EXPECT_THAT(time.Run(adapter->MissingMachines(ids)), IsEmpty());
  imposter.Remove("/api/v1/namespaces/" + Namespace() + "/pods/pod-small");
  time.Advance(1min);
  EXPECT_EQ(time.Run(adapter->MissingMachines(ids)), ids);
  label->has_pod = false;
  time.Advance(1min);
  EXPECT_THAT(time.Run(adapter->MissingMachines(ids)), IsEmpty()) << "the namespace is all there is of it";
}

// TAKE-3
TEST_F(KubernetesTest, APodThatTheClusterEndsIsNoticedAtOnceAndOurDeletionCostsNothing) {
  auto state = [this] { return time.Run(store.nodes.Read(last_id))->record.state; };
  Start();
  Launch();
  ASSERT_EQ(state(), NodeState::kReady);
  imposter.SetPodStatus(Namespace(), "pod-small", {{"phase", "Failed"}, {"reason", "Evicted"}});
  time.Advance(15s);
  EXPECT_EQ(state(), NodeState::kDeleting);
  Launch();
  imposter.Remove("/api/v1/namespaces/" + Namespace() + "/pods/pod-small");
  time.Advance(15s);
  EXPECT_EQ(state(), NodeState::kDeleting);
  Launch();
  NodeId kept = last_id;
  Launch();
  Delete();
  imposter.ClearCalls();
  time.Advance(15s);
  EXPECT_EQ(imposter.Count("GET", "/api/v1/namespaces"), 0) << "nothing is checked";
  EXPECT_EQ(time.Run(store.nodes.Read(kept))->record.state, NodeState::kReady);
}

// K8S-83
TEST_F(KubernetesTest, IdleTrafficDoesNotGrowWithForeignNamespaces) {
  Start();
  for (int i = 0; i < 1000; ++i) imposter.Put(fmt::format("/api/v1/namespaces/other-{}", i), {});
  imposter.ClearCalls();
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(imposter.calls().size(), 1u);
  EXPECT_THAT(imposter.calls()[0].path,
              HasSubstr("labelSelector=nodepool_provider_name%3Dcluster,nodepool_node_id"));
}

}  // namespace

}  // namespace nodepool::drivers::kubernetes
