// Deletion of nodes of the driver kubernetes, and of what was left behind.
#include <boost/json/parse.hpp>

#include "async/task_group.h"
#include "drivers/kubernetes/kubernetes_fixture_for_test.h"

namespace nodepool::drivers::kubernetes {
namespace {

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
