// Nodes of the driver kubernetes from creation to deletion.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "async/task_group.h"
#include "base/json_fields.h"
#include "drivers/kubernetes/kubernetes_fixture_for_test.h"

namespace nodepool::drivers::kubernetes {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

constexpr const char* kNamespaceList = "/api/v1/namespaces";

// K8S-10, K8S-16, K8S-20, K8S-21, K8S-31, K8S-61
TEST_F(KubernetesTest, APodInANamespaceOfItsOwn) {
  Start();
  Launch();
  std::string name = Namespace();
  EXPECT_THAT(name, MatchesRegex("main-" + last_id.str() + "-[0-9a-f]{8}"));
  EXPECT_EQ(last.state, NodeState::kReady);
  EXPECT_EQ(last.external_id.as_string(), name);
  EXPECT_EQ(last.interface_ip, "pod-small");
  EXPECT_EQ(last.host_id, "node-1");
  EXPECT_EQ(last.cloud, "ci");
  EXPECT_EQ(last.connection_type, "kubectl");
  EXPECT_EQ(last.python_path, "auto");
  EXPECT_EQ(last.shell_type, std::nullopt);
  EXPECT_EQ(last.username, std::nullopt);
  EXPECT_EQ(last.az, std::nullopt);
  EXPECT_THAT(last.host_keys, IsEmpty());
  EXPECT_EQ(last.resources, (Resources{{"cores", 0}, {"instances", 1}, {"ram", 0}}));
  EXPECT_EQ(Port(), json::parse("{\"namespace\":\"" + name +
                                "\",\"host\":\"https://cluster\",\"skiptls\":false,"
                                "\"token\":\"token of " +
                                name + "\",\"user\":\"zuul-worker\",\"name\":\"" + name +
                                "\",\"pod\":\"pod-small\",\"ca_crt\":\"QVVUSA==\"}"));
  std::string labels = R"({"nodepool_node_id":")" + last_id.str() +
                       R"(","nodepool_node_label":"pod-small","nodepool_pool_name":"main",)"
                       R"("nodepool_provider_name":"cluster"})";
  EXPECT_EQ(imposter.Posted(kNamespaceList),
            json::parse(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")" + name +
                        R"(","labels":)" + labels + "}}"));
  EXPECT_EQ(
      imposter.Posted("/api/v1/namespaces/" + name + "/pods"),
      json::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-small","labels":)" + labels +
                  R"(,"annotations":{}},"spec":{"containers":[{"name":"pod-small","image":"debian:12",)"
                  R"("imagePullPolicy":"IfNotPresent","env":[],"command":["/bin/sh","-c"],)"
                  R"("args":["while true; do sleep 30; done;"]}]}})"));
  std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + name;
  EXPECT_EQ(TextIn(imposter.Posted(rbac + "/roles").at("metadata").as_object(), "name"), "zuul-restricted");
  EXPECT_EQ(TextIn(imposter.Posted(rbac + "/rolebindings").at("roleRef").as_object(), "name"),
            "zuul-restricted");
  EXPECT_EQ(
      TextIn(imposter.Posted("/api/v1/namespaces/" + name + "/secrets").at("metadata").as_object(), "name"),
      "zuul-worker");
  EXPECT_THAT(results, ElementsAre("ready"));
}

// K8S-22
TEST_F(KubernetesTest, ANamespaceWithoutPod) {
  label->has_pod = false;
  label->connection.connection_type = "namespace";
  Start();
  Launch();
  EXPECT_EQ(last.connection_type, "namespace");
  EXPECT_EQ(last.interface_ip, std::nullopt);
  EXPECT_EQ(last.host_id, std::nullopt);
  EXPECT_FALSE(Port().contains("pod"));
  EXPECT_EQ(imposter.Count("POST", "/api/v1/namespaces/" + Namespace() + "/pods"), 0);
  json::object role =
      imposter.Posted("/apis/rbac.authorization.k8s.io/v1/namespaces/" + Namespace() + "/roles");
  EXPECT_EQ(TextIn(role.at("metadata").as_object(), "name"), "zuul");
  EXPECT_EQ(role.at("rules").as_array().size(), 5u);
}

// K8S-11, K8S-12, K8S-14, K8S-17, K8S-18, K8S-19
TEST_F(KubernetesTest, EverySettingReachesThePod) {
  label->labels = {{"team", "ci"}};
  label->dynamic_labels = {{"tenant", "{request.tenant_name}"},
                           {"long", "{request.requestor}"},
                           {"broken", "{request.nothing}"},
                           {"nodepool_node_id", "no"}};
  label->annotations = {{"note", "7"}};
  label->privileged = false;
  label->node_selector = {{"storageType", "ssd"}};
  label->scheduler_name = "other";
  label->volumes = {json::object{{"name", "v"}, {"emptyDir", json::object()}}};
  label->volume_mounts = {json::object{{"name", "v"}, {"mountPath", "/v"}}};
  label->env = {json::object{{"name", "A"}, {"value", "b"}}};
  label->requests = {2, 1024, 10};
  label->limits = {8, 4196, 0};
  label->gpu = 0.5;
  label->gpu_resource = "nvidia.com/gpu";
  label->image_pull = "Always";
  request_record.tenant_name = "tenant-1";
  request_record.requestor = "a [b] " + std::string(80, 'x');
  Start();
  Launch();
  json::object body = imposter.Posted("/api/v1/namespaces/" + Namespace() + "/pods");
  json::object labels = body.at("metadata").at("labels").as_object();
  EXPECT_EQ(TextIn(labels, "team"), "ci");
  EXPECT_EQ(TextIn(labels, "tenant"), "tenant-1");
  EXPECT_EQ(TextIn(labels, "long"), "a--b--" + std::string(57, 'x'));
  EXPECT_FALSE(labels.contains("broken"));
  EXPECT_EQ(TextIn(labels, "nodepool_node_id"), last_id.str());
  EXPECT_EQ(TextIn(body.at("metadata").at("annotations").as_object(), "note"), "7");
  EXPECT_EQ(body.at("spec"),
            json::parse(R"({"containers":[{"name":"pod-small","image":"debian:12","imagePullPolicy":"Always",
                "env":[{"name":"A","value":"b"}],"command":["/bin/sh","-c"],
                "args":["while true; do sleep 30; done;"],
                "resources":{"requests":{"cpu":2,"memory":"1024Mi","ephemeral-storage":"10M","nvidia.com/gpu":"0.50"},
                             "limits":{"cpu":8,"memory":"4196Mi","nvidia.com/gpu":"0.50"}},
                "volumeMounts":[{"name":"v","mountPath":"/v"}],"securityContext":{"privileged":false}}],
                "nodeSelector":{"storageType":"ssd"},"schedulerName":"other",
                "volumes":[{"name":"v","emptyDir":{}}]})"));
}

// K8S-13
TEST_F(KubernetesTest, ACustomSpecIsSentAsItIs) {
  label->spec = {{"containers", json::array{json::object{{"name", "mine"}, {"image", "x"}}}}};
  Start();
  Launch();
  EXPECT_EQ(imposter.Posted("/api/v1/namespaces/" + Namespace() + "/pods").at("spec"), label->spec);
}

// K8S-29
TEST_F(KubernetesTest, WithoutVerificationThereIsNoAuthority) {
  connection.verifies_tls = false;
  Start();
  Launch();
  EXPECT_EQ(Port().at("skiptls"), true);
  EXPECT_FALSE(Port().contains("ca_crt"));
}

// K8S-58
TEST_F(KubernetesTest, ATokenIsAskedForWhenTheSecretStaysEmpty) {
  imposter.fills_secrets = false;
  Start();
  Launch();
  EXPECT_EQ(Port().at("token"), "requested token 1");
  EXPECT_EQ(Port().at("ca_crt"), "cm9vdCBhdXRob3JpdHk=");
  EXPECT_THAT(results, ElementsAre("ready"));
}

class SecretForbidden : public KubernetesTest,
                        public ::testing::WithParamInterface<std::pair<int, const char*>> {};

// K8S-99
TEST_P(SecretForbidden, ATokenIsAskedForAtOnce) {
  for (Kind kind : {Kind::kKubernetes, Kind::kOpenshift}) {
    Start(kind);
    results.clear();
    imposter.Add({.method = "POST",
                  .path = "/secrets",
                  .status = GetParam().first,
                  .reason = "Forbidden",
                  .message = GetParam().second,
                  .times = 100});
    SteadyTime begun = time.loop().SteadyNow();
    Launch();
    EXPECT_LT(time.loop().SteadyNow() - begun, 5s);
    EXPECT_THAT(TextIn(Port(), "token"), HasSubstr("requested token"));
    EXPECT_THAT(results, ElementsAre("ready"));
    EXPECT_EQ(imposter.Count("GET", "/api/v1/namespaces/" + Namespace() + "/secrets"), 0);
    time.Run(provider->Stop());
    provider.reset();
  }
}
INSTANTIATE_TEST_SUITE_P(
    By, SecretForbidden,
    ::testing::Values(
        std::pair(403, "admission webhook \"v.example\" denied the request: no long-lived tokens"),
        std::pair(400, "admission webhook \"v.example\" denied the request: no long-lived tokens")));

TEST_F(KubernetesTest, WithoutTheRightToMakeSecretsATokenIsAskedForAtOnce) {
  imposter.is_denied = [](const nodepool::testing::KubernetesImposter::Call& call) {
    return call.method == "POST" && call.path.ends_with("/secrets");
  };
  Start();
  Launch();
  EXPECT_EQ(Port().at("token"), "requested token 1");
  EXPECT_THAT(results, ElementsAre("ready"));
}

// K8S-89, K8S-90
TEST_F(KubernetesTest, ATokenThatWasAskedForIsRenewedWhileItsNodeIsReady) {
  imposter.fills_secrets = false;
  imposter.longest_token = 30h;
  Start();
  Launch();
  json::object asked =
      imposter.Posted("/api/v1/namespaces/" + Namespace() + "/serviceaccounts/zuul-worker/token");
  EXPECT_EQ(asked.at("spec").at("expirationSeconds"), 30 * 86'400) << "longer than any use";
  auto stored = [this] { return time.Run(store.nodes.Read(last_id))->record; };
  auto token = [&stored] { return TextIn(stored().connection_port.value().as_object(), "token"); };
  time.Advance(14h);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(token(), "requested token 1");
  json::object before = stored().connection_port.value().as_object();
  imposter.longest_token = 1h;
  time.Advance(2h);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(token(), "requested token 2");
  before["token"] = "requested token 2";
  EXPECT_EQ(stored().connection_port.value(), json::value(before)) << "nothing else has changed";
  auto is_reusable = [&] {
    store::StoredRequest request;
    request.id = RequestId("100-0000000001");
    auto handler = provider->RequestHandler(config->pools.begin()->second, request);
    return time.Run(handler->CheckReusableNode(*time.Run(store.nodes.Read(last_id))));
  };
  EXPECT_TRUE(is_reusable());
  time.Advance(40min);
  EXPECT_TRUE(is_reusable());
  time.Advance(6min);
  EXPECT_FALSE(is_reusable()) << "less than a quarter of its hour is left";
  time.Run(provider->CleanupLeakedResources());
  EXPECT_TRUE(is_reusable());
  EXPECT_EQ(token(), "requested token 3");
}

// K8S-89: without an account of its own a node has our token.
TEST_F(KubernetesTest, AReadyPodGetsOurNewTokenWhenItRotates) {
  imposter.Put("/api/v1/namespaces/main", {});
  Start(Kind::kOpenshiftPods);
  Launch();
  connection.user.token = "rotated";
  imposter.token = "rotated";
  time.Run(provider->CleanupLeakedResources());
  Node record = time.Run(store.nodes.Read(last_id))->record;
  EXPECT_EQ(TextIn(record.connection_port.value().as_object(), "token"), "rotated");
}

// K8S-62
TEST_F(KubernetesTest, ANewNamespaceIsGivenTimeForItsAccounts) {
  Start();
  imposter.Add(
      {.method = "POST",
       .path = "/pods",
       .status = 403,
       .reason = "Forbidden",
       .message = "error looking up service account main/default: serviceaccount \"default\" not found",
       .times = 3});
  imposter.Add({.method = "POST", .path = "/pods", .status = 500, .reason = "ServerTimeout"});
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
}

class AnyCallFails : public KubernetesTest, public ::testing::WithParamInterface<int> {};

// K8S-55
TEST_P(AnyCallFails, Once) {
  const std::vector<std::pair<std::string, std::string>> calls = {
      {"POST", "/namespaces"}, {"POST", "/serviceaccounts"}, {"POST", "/secrets"}, {"GET", "/zuul-worker"},
      {"POST", "/roles"},      {"POST", "/rolebindings"},    {"POST", "/pods"},    {"GET", "/pods"},
      {"GET", "/namespaces"}};
  for (const auto& [method, path] : calls) {
    nodepool::testing::KubernetesImposter::Fault fault{.method = method, .path = path, .status = GetParam()};
    if (GetParam() != 0) fault.retry_after = 2;
    Start();
    imposter.Add(fault);
    results.clear();
    Launch();
    EXPECT_THAT(results, ElementsAre("ready")) << method << " " << path;
    time.Run(provider->Stop());
    provider.reset();
  }
}
INSTANTIATE_TEST_SUITE_P(By, AnyCallFails, ::testing::Values(0, 429, 503));

class PodFails : public KubernetesTest {
 protected:
  // The error of a launch whose pod gets this status, and how long it took.
  std::string ErrorWith(const std::string& status) {
    config->launch_retries = 1;
    imposter.pod_becomes = "";
    Start();
    begun = time.loop().SteadyNow();
    TaskGroup tasks(time.loop(), log::Logger("test"));
    tasks.Spawn("status", SetStatus(status));
    std::string message = LaunchFails();
    took = time.loop().SteadyNow() - begun;
    time.Run(tasks.Stop());
    return message;
  }
  Task<> SetStatus(std::string status) {
    co_await time.loop().SleepFor(1s);
    std::vector<std::string> names = imposter.Namespaces();
    imposter.SetPodStatus(names.at(0), "pod-small", json::parse(status).as_object());
  }
  static std::string Waiting(const std::string& reason) {
    return R"({"phase":"Pending","containerStatuses":[{"name":"c","state":{"waiting":{"reason":")" + reason +
           R"(","message":"registry says no"}}}]})";
  }
  SteadyTime begun;
  Duration took{};
};

// K8S-50
TEST_F(PodFails, WhenItEnds) {
  EXPECT_THAT(ErrorWith(R"({"phase":"Failed","reason":"Evicted","message":"low on disk","containerStatuses":
                        [{"name":"c","state":{"terminated":{"exitCode":7}}}]})"),
              AllOf(HasSubstr("Evicted: low on disk"), HasSubstr("container c with code 7")));
  EXPECT_LT(took, 2s);
  EXPECT_THAT(results, ElementsAre("error.status"));
}

// K8S-46
TEST_F(PodFails, WhenItsImageCannotBeFetchedForAMinute) {
  EXPECT_THAT(ErrorWith(Waiting("ErrImagePull")), HasSubstr("ErrImagePull: registry says no"));
  EXPECT_GE(took, 60s);
  EXPECT_LT(took, 63s);
}

TEST_F(PodFails, SoonWhenItsConfigurationIsWrong) {
  EXPECT_THAT(ErrorWith(Waiting("CreateContainerConfigError")), HasSubstr("registry says no"));
  EXPECT_LT(took, 18s);
}

TEST_F(PodFails, AtOnceWhenItCrashesAgainAndAgain) {
  EXPECT_THAT(ErrorWith(Waiting("CrashLoopBackOff")), HasSubstr("CrashLoopBackOff"));
  EXPECT_LT(took, 2s);
}

// K8S-49: the cluster may grow; what it says is the launch's error at its end.
TEST_F(PodFails, WhenNoNodeHasRoomUntilTheEnd) {
  EXPECT_THAT(ErrorWith(R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
                        "reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu."}]})"),
              HasSubstr("pod failed to initialize (Unschedulable: 0/3 nodes are available"));
  EXPECT_GE(took, 290s);
  EXPECT_THAT(results, ElementsAre("error.capacity"));
}

// K8S-48
TEST_F(KubernetesTest, APodThatNeverRunsIsTriedAgain) {
  imposter.pod_becomes = "";
  imposter.events = {"Pulling image"};
  Start();
  EXPECT_THAT(LaunchFails(), HasSubstr("pod failed to initialize (Pending)"));
  EXPECT_THAT(results, ElementsAre("error.status", "error.status", "error.status"));
  Delete();
  EXPECT_THAT(imposter.Namespaces(), IsEmpty());
}

// K8S-47
TEST_F(KubernetesTest, AnImageThatIsFetchedAfterAWhile) {
  imposter.pod_starts = 20s;
  Start();
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto flap = [](KubernetesTest* test, Loop& loop,
                 nodepool::testing::KubernetesImposter& imposter) -> Task<> {
    for (const char* reason : {"ErrImagePull", "ImagePullBackOff", "ErrImagePull"}) {
      co_await loop.SleepFor(5s);
      (void)test;
      std::string status =
          std::string(R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":")") + reason +
          R"("}}}]})";
      imposter.SetPodStatus(imposter.Namespaces().at(0), "pod-small", json::parse(status).as_object());
    }
  };
  tasks.Spawn("flap", flap(this, time.loop(), imposter));
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
  time.Run(tasks.Stop());
}

// K8S-51
TEST_F(KubernetesTest, ARefusedNamespaceIsTriedAgain) {
  Start();
  imposter.Add({.method = "POST", .path = "/namespaces", .status = 403, .reason = "Forbidden"});
  Launch();
  EXPECT_EQ(results.size(), 2u);
  EXPECT_EQ(results.back(), "ready");
}

// K8S-54
TEST_F(KubernetesTest, AQuotaThatIsUsedUpIsWaitedFor) {
  Start();
  imposter.Add({.method = "POST",
                .path = "/pods",
                .status = 403,
                .reason = "Forbidden",
                .message = "pods \"x\" is forbidden: Exceeded quota: compute, requested: pods=1"});
  LaunchFails();
  EXPECT_EQ(last_verdict, Verdict::kQuota);
  EXPECT_THAT(last_refused, ElementsAre("instances"));
  EXPECT_THAT(results, ElementsAre("error.quota"));
}

// K8S-101: what a label does not say that it needs says nothing about other labels.
TEST_F(KubernetesTest, AQuotaOfWhatNoLabelNeedsConcernsTheLabelAlone) {
  Start();
  imposter.Add(
      {.method = "POST",
       .path = "/pods",
       .status = 403,
       .reason = "Forbidden",
       .message = "exceeded quota: compute, requested: limits.cpu=1,pods=1, used: limits.cpu=9,pods=9"});
  LaunchFails();
  EXPECT_EQ(last_verdict, Verdict::kQuota);
  EXPECT_THAT(last_refused, IsEmpty());
}

// K8S-52
TEST_F(KubernetesTest, ALabelThatTheClusterWouldRefuseIsInError) {
  label->fault = "the name of label X cannot be a pod's name";
  Start();
  EXPECT_THROW(provider->QuotaForLabel(*label), Error);
  EXPECT_EQ(provider->LabelReady(*label), driver::Readiness::kNotReady);
}

// The rights of older releases are given where the launcher has no others (driver-kubernetes.md 5.4).
TEST_F(KubernetesTest, RightsThatWeLackAreNotGiven) {
  int refusals = 0;
  imposter.is_denied = [&refusals](const nodepool::testing::KubernetesImposter::Call& call) {
    bool is_full = json::serialize(call.body).find("pods/log\"") != std::string::npos;
    refusals += is_full;
    return is_full;
  };
  Start();
  Launch();
  Launch();
  EXPECT_THAT(results, ElementsAre("ready", "ready"));
  EXPECT_EQ(refusals, 1) << "it is remembered";
}

}  // namespace
}  // namespace nodepool::drivers::kubernetes
