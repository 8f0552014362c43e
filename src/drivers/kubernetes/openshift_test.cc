// Nodes of the drivers openshift and openshiftpods from creation to deletion.
#include <boost/json/parse.hpp>

#include "async/task_group.h"
#include "base/json_fields.h"
#include "base/log/logging.h"
#include "drivers/kubernetes/kubernetes_fixture_for_test.h"

namespace nodepool::drivers::kubernetes {
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

}  // namespace
}  // namespace nodepool::drivers::kubernetes
