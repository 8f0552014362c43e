#include <boost/json/parse.hpp>

#include "async/task_group.h"
#include "base/json_fields.h"
#include "base/log/logging.h"
#include "driver/cloud/metadata.h"
#include "driver/testing/checks.h"
#include "drivers/kubernetes/kubernetes_fixture_for_test.h"

namespace nodepool::drivers::kubernetes {

// Nodes of the drivers openshift and openshiftpods from creation to deletion.

namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OpenshiftTest : public KubernetesTest {
 protected:
  // What a self-provisioner may not do.
  void DenyCluster() {
    imposter.is_denied = [](const nodepool::testing::KubernetesImposter::Call& call) {
      return call.path.starts_with("/api/v1/pods") || call.path.starts_with("/api/v1/namespaces?") ||
             call.method == "PATCH";
    };
  }
};

// K8S-15, K8S-20, K8S-23
TEST_F(OpenshiftTest, APodInAProjectOfItsOwn) {
  DenyCluster();
  label->image_pull_secrets = {json::object{{"name", "registry"}}};
  Start(Kind::kOpenshift);
  Launch();
  std::string name = Namespace();
  EXPECT_EQ(last.external_id.as_string(), name);
  EXPECT_EQ(last.host_id, std::nullopt);
  EXPECT_EQ(last.interface_ip, "pod-small");
  EXPECT_FALSE(Port().contains("name"));
  EXPECT_EQ(Port().at("pod"), "pod-small");
  EXPECT_EQ(TextIn(imposter.Posted("/apis/project.openshift.io/v1/projectrequests"), "kind"),
            "ProjectRequest");
  json::object binding =
      imposter.Posted("/apis/rbac.authorization.k8s.io/v1/namespaces/" + name + "/rolebindings");
  EXPECT_EQ(binding, json::parse(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
      "metadata":{"name":"admin-0"},
      "roleRef":{"kind":"ClusterRole","name":"admin","apiGroup":"rbac.authorization.k8s.io"},
      "subjects":[{"kind":"ServiceAccount","name":"zuul-worker","namespace":")" +
                                 name + R"("}]})"));
  EXPECT_EQ(imposter.Count("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/" + name + "/roles"), 0);
  json::object pod = imposter.Posted("/api/v1/namespaces/" + name + "/pods");
  EXPECT_EQ(pod.at("spec").at("imagePullSecrets"), json::parse(R"([{"name":"registry"}])"));
  Delete();
  EXPECT_THAT(imposter.Namespaces(), IsEmpty());
}

// K8S-15
TEST_F(OpenshiftTest, PullSecretsAreAlwaysThere) {
  Start(Kind::kOpenshift);
  Launch();
  json::object pod = imposter.Posted("/api/v1/namespaces/" + Namespace() + "/pods");
  EXPECT_EQ(pod.at("spec").at("imagePullSecrets"), json::array());
}

// Rights in a new project take a moment to take effect (driver-kubernetes.md 7).
TEST_F(OpenshiftTest, RightsInANewProjectMayTakeAMoment) {
  Start(Kind::kOpenshift);
  imposter.Add(
      {.method = "POST", .path = "/serviceaccounts", .status = 403, .reason = "Forbidden", .times = 4});
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
}

// K8S-53
TEST_F(OpenshiftTest, TheProjectLimitIsAQuota) {
  Start(Kind::kOpenshift);
  imposter.Add({.method = "POST",
                .path = "/projectrequests",
                .status = 403,
                .reason = "Forbidden",
                .message = "cannot create more than 2 project(s)."});
  LaunchFails();
  EXPECT_EQ(last_verdict, Verdict::kQuota);
}

// K8S-79
TEST_F(OpenshiftTest, AProjectThatMayNotBeSeenIsGone) {
  Start(Kind::kOpenshift);
  Launch();
  imposter.Remove("/api/v1/namespaces/" + Namespace());
  imposter.Add({.method = "DELETE", .path = Namespace(), .status = 403, .reason = "Forbidden"});
  Delete();
}

// K8S-77
TEST_F(OpenshiftTest, LeakedProjectsAreThoseThatWeAskedFor) {
  auto project = [](const char* requester) -> json::object {
    json::object annotations;
    if (*requester != 0) annotations["openshift.io/requester"] = requester;
    return {{"metadata", json::object{{"annotations", std::move(annotations)}}}};
  };
  Start(Kind::kOpenshift);
  imposter.Put("/api/v1/namespaces/main-0000000007", project("ci"));
  imposter.Put("/api/v1/namespaces/main-0000000008", project("somebody"));
  imposter.Put("/api/v1/namespaces/main-0000000009", project(""));
  imposter.Put("/api/v1/namespaces/other-0000000010", project("ci"));
  imposter.Put("/api/v1/namespaces/main-0000000011-0a1b2c3d", project("ci"));
  imposter.Put("/api/v1/namespaces/main-0000000012-0a1b2c3x", project("ci"));
  imposter.Put("/api/v1/namespaces/main-x", project("ci"));
  for (int i = 0; i < 2; ++i) time.Run(provider->CleanupLeakedResources());
  EXPECT_THAT(leaks, ElementsAre("2 nodes"));
  EXPECT_THAT(imposter.Namespaces(), ElementsAre("main-0000000008", "main-0000000009",
                                                 "main-0000000012-0a1b2c3x", "main-x", "other-0000000010"));
}

class OpenshiftPodsTest : public KubernetesTest {
 protected:
  void Start() {
    imposter.Put("/api/v1/namespaces/main", {});
    KubernetesTest::Start(Kind::kOpenshiftPods);
  }
  std::string Pod() const { return Port().at("pod").as_string().c_str(); }
};

// K8S-24
TEST_F(OpenshiftPodsTest, APodInTheNamespaceOfThePool) {
  Start();
  Launch();
  std::string pod = Pod();
  EXPECT_THAT(pod, ::testing::MatchesRegex("pod-small-" + last_id.str() + "-[0-9a-f]{8}"));
  EXPECT_EQ(last.external_id.as_string(), "main-" + pod);
  EXPECT_EQ(last.interface_ip, pod);
  EXPECT_EQ(last.host_id, "node-1");
  EXPECT_EQ(Port(),
            json::parse(R"({"namespace":"main","host":"https://cluster","skiptls":false,"token":"own token",
      "user":"zuul-worker","pod":")" +
                        pod + R"(","ca_crt":"YXV0aG9yaXR5"})"));
  json::object body = imposter.Posted("/api/v1/namespaces/main/pods");
  EXPECT_EQ(TextIn(body.at("spec").at("containers").at(0).as_object(), "name"), "pod-small");
  EXPECT_EQ(imposter.Count("POST", "/"), 1);
  Delete();
  EXPECT_FALSE(imposter.objects.contains("/api/v1/namespaces/main/pods/" + pod));
  EXPECT_THAT(imposter.Namespaces(), ElementsAre("main"));
}

// K8S-29
// K8S-70
TEST_F(OpenshiftPodsTest, APodThatIsHeldIsReportedWithItsFinalizers) {
  Start();
  Launch();
  std::string path = "/api/v1/namespaces/main/pods/" + Pod();
  json::object pod = imposter.objects.at(path);
  pod["metadata"].as_object()["finalizers"] = json::array{"example.com/held"};
  imposter.Put(path, pod);
  log::Capture log;
  TaskGroup tasks(time.loop(), log::Logger("test"));
  tasks.Spawn("delete", provider->DeleteResources(last_id, last));
  time.Advance(70s);
  EXPECT_EQ(log.Count("is still being deleted: its finalizers example.com/held"), 1);
  imposter.Remove(path);
  time.Run(tasks.Join());
}

TEST_F(OpenshiftPodsTest, WithoutVerificationTheAuthorityIsNull) {
  connection.verifies_tls = false;
  Start();
  Launch();
  EXPECT_TRUE(Port().at("ca_crt").is_null());
}

TEST_F(OpenshiftPodsTest, WithoutATokenThereIsNothingToHandOut) {
  connection.user.certificate_pem = "certificate";
  connection.user.token = "";
  Start();
  EXPECT_THAT(LaunchFails(), HasSubstr("has no token that jobs could get"));
  EXPECT_EQ(imposter.Count("POST", "/"), 0);
}

// K8S-77, K8S-78
TEST_F(OpenshiftPodsTest, LeakedPodsOfPoolsWhoseNamesBeginAlike) {
  auto more = std::make_shared<driver::PoolConfig>();
  more->name = PoolName("main-b");
  config->pools[more->name] = more;
  auto labelled = [](const char* node) -> json::object {
    json::object labels = {{"nodepool_provider_name", "cluster"}, {"nodepool_node_id", node}};
    return {{"metadata", json::object{{"labels", std::move(labels)}}}};
  };
  Start();
  imposter.Put("/api/v1/namespaces/main-b", {});
  imposter.Put("/api/v1/namespaces/main/pods/b-small-0000000007", labelled("0000000007"));
  imposter.Put("/api/v1/namespaces/main-b/pods/small-0000000008", labelled("0000000008"));
  imposter.Put("/api/v1/namespaces/main/pods/foreign-0000000009", {});
  for (int i = 0; i < 2; ++i) time.Run(provider->CleanupLeakedResources());
  EXPECT_THAT(leaks, ElementsAre("2 nodes"));
  EXPECT_EQ(imposter.objects.count("/api/v1/namespaces/main/pods/foreign-0000000009"), 1u);
  EXPECT_EQ(imposter.objects.count("/api/v1/namespaces/main/pods/b-small-0000000007"), 0u);
  EXPECT_EQ(imposter.objects.count("/api/v1/namespaces/main-b/pods/small-0000000008"), 0u);
}

// What is of another installation, or of a node that had the same id before, is neither used nor deleted.

namespace json = boost::json;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class IdentityTest : public KubernetesTest, public ::testing::WithParamInterface<Kind> {
 protected:
  // A node with the id of the first of every tree, made by another installation with the same configuration.
  Task<> CreateFirstNode(char digit, driver::cloud::Instance& made) {
    driver::cloud::CreateParameters parameters;
    parameters.label = config->pools.begin()->second->labels.begin()->second;
    parameters.pool = config->pools.begin()->second;
    parameters.metadata = driver::cloud::MetadataOf(NodeId("0000000000"), pool->name, config->name);
    parameters.attempt_mark = std::string(32, digit);
    driver::testing::Recorder machine;
    made = co_await adapter->Create(machine, std::move(parameters));
  }
  void StartKind() {
    if (GetParam() == Kind::kOpenshiftPods) imposter.Put("/api/v1/namespaces/main", {});
    Start(GetParam());
  }
  // The external ids of what the provider finds of its own.
  std::vector<std::string> Listed() {
    std::vector<std::string> ids;
    for (const driver::cloud::Resource& resource : time.Run(adapter->ListResources()))
      ids.push_back(resource.id);
    return ids;
  }
  std::string LastId() const { return std::string(last.external_id.as_string()); }
};

// K8S-94: records are lost, and the first node of the new tree meets that of the old one.
TEST_P(IdentityTest, ANodeOfATreeThatWasLostIsNotUsed) {
  StartKind();
  driver::cloud::Instance former;
  time.Run(CreateFirstNode('a', former));
  Launch();
  ASSERT_EQ(last_id.str(), "0000000000");
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_THAT(Listed(), UnorderedElementsAre(former.name, LastId()));
  if (GetParam() != Kind::kOpenshiftPods) {
    const json::object& port = former.connection.connection_port->as_object();
    EXPECT_NE(Port().at("namespace"), port.at("namespace"));
    EXPECT_NE(Port().at("token"), port.at("token"));
  }
  for (int i = 0; i < 2; ++i) time.Run(provider->CleanupLeakedResources());
  EXPECT_THAT(Listed(), ElementsAre(LastId())) << "the former one goes as every machine without a record";
  EXPECT_THAT(leaks, ElementsAre("1 nodes"));
}

// K8S-95
TEST_P(IdentityTest, TwoInstallationsWithTheSameNamesShareNothing) {
  StartKind();
  std::vector<driver::cloud::Instance> made(2);
  TaskGroup tasks(time.loop(), log::Logger("test"));
  tasks.Spawn("first", CreateFirstNode('a', made[0]));
  tasks.Spawn("second", CreateFirstNode('b', made[1]));
  time.Run(tasks.Join());
  EXPECT_THAT(Listed(), UnorderedElementsAre(made[0].name, made[1].name));
  EXPECT_NE(made[0].name, made[1].name);
  driver::testing::Recorder machine;
  time.Run(adapter->Delete(machine, made[0].external_id));
  EXPECT_THAT(Listed(), ElementsAre(made[1].name)) << "only the own one is deleted";
}

// K8S-56: what was made although nobody heard of it is the attempt's, whichever call it was.
TEST_P(IdentityTest, EveryAnswerMayBeLost) {
  StartKind();
  for (const char* path : {"/namespaces", "/projectrequests", "/serviceaccounts", "/secrets", "/roles",
                           "/rolebindings", "/pods"})
    imposter.Add({.method = "POST", .path = path, .has_effect = true});
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_THAT(Listed(), ElementsAre(LastId()));
}

// K8S-96: the attempt fails without having learnt what it has made; the next one removes it first.
TEST_P(IdentityTest, WhatAnAttemptMayHaveMadeIsDeletedBeforeTheNextOne) {
  StartKind();
  for (const char* path : {"/namespaces", "/projectrequests", "/main/pods"})
    imposter.Add({.method = "POST", .path = path, .times = 2, .has_effect = true});
  Launch();
  EXPECT_EQ(results.back(), "ready");
  EXPECT_EQ(imposter.Count("DELETE", "/"), 1);
  EXPECT_THAT(Listed(), ElementsAre(LastId()));
}

// K8S-57: a launcher that dies during any call leaves nothing that its successor does not delete.
TEST_P(IdentityTest, WhateverADeadLauncherLeftIsDeleted) {
  imposter.pod_starts = 100ms;
  StartKind();
  driver::cloud::Instance made;
  for (std::size_t calls = 1; made.name.empty() && calls < 30; ++calls) {
    imposter.ClearCalls();
    TaskGroup tasks(time.loop(), log::Logger("test"));
    tasks.Spawn("create", CreateFirstNode('a', made));
    time.RunUntil([&] { return imposter.calls().size() == calls || !made.name.empty(); });
    time.Run(tasks.Stop());
    for (int i = 0; i < 2; ++i) time.Run(provider->CleanupLeakedResources());
    EXPECT_THAT(Listed(), IsEmpty()) << "after " << calls << " calls";
  }
  EXPECT_FALSE(made.name.empty()) << "the last one went on to the end";
}

INSTANTIATE_TEST_SUITE_P(Kinds, IdentityTest,
                         ::testing::Values(Kind::kKubernetes, Kind::kOpenshift, Kind::kOpenshiftPods));

}  // namespace

}  // namespace nodepool::drivers::kubernetes
