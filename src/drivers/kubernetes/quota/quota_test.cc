// The cluster's own limits: nodes, pods of others, and ResourceQuotas.
#include <boost/json/parse.hpp>

#include "base/log/logging.h"
#include "drivers/kubernetes/config/kubernetes_config.h"
#include "drivers/kubernetes/kubernetes_fixture_for_test.h"
#include "drivers/kubernetes/quota/capacity.h"

namespace nodepool::drivers::kubernetes {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json::object Json(const std::string& text) { return json::parse(text).as_object(); }

json::object NodeJson(int cpu, const std::string& memory, const std::string& spec = "{}") {
  return Json(
      fmt::format(R"({{"spec":{},"status":{{"allocatable":{{"cpu":"{}","memory":"{}","pods":"10"}}}}}})",
                  spec, cpu, memory));
}

json::object PodJson(const std::string& node, const std::string& requests,
                     const std::string& phase = "Running") {
  return Json(fmt::format(
      R"({{"spec":{{"nodeName":"{}","containers":[{{"resources":{{"requests":{}}}}}]}},"status":{{"phase":"{}"}}}})",
      node, requests, phase));
}

Object Named(std::string name, const json::object& source) {
  Object object = ReadObject(source);
  object.name = std::move(name);
  return object;
}

PodNeed Need(double cores, double ram = 0) {
  return {{{"instances", 1}, {"cores", cores}, {"ram", ram}}, {}, false};
}

TEST(AmountsTest, RequestsAreThoseThatTheSchedulerCounts) {
  json::object spec = Json(R"({"containers":[{"resources":{"requests":{"cpu":"250m","memory":"1Gi"}}},
                                             {"resources":{"requests":{"cpu":1,"nvidia.com/gpu":"2"}}}, {}],
                               "initContainers":[{"resources":{"requests":{"cpu":"3","memory":"1Mi"}}}],
                               "overhead":{"cpu":"100m"}})");
  EXPECT_EQ(RequestsOf(spec), (Resources{{"cores", 3.1}, {"ram", 1024}, {"nvidia.com/gpu", 2}}));
  EXPECT_EQ(AmountsOf(Json(R"({"pods":"9","ephemeral-storage":"5M","cpu":"x"})")),
            (Resources{{"instances", 9}, {"ephemeral-storage", 5}}));
  EXPECT_EQ(AmountsOf(Json(R"({"requests.cpu":"4","cpu":"3","requests.memory":"2Mi","limits.cpu":"1"})")),
            (Resources{{"cores", 3}, {"ram", 2}, {"limits.cpu", 1}}));
}

TEST(ClusterRoomTest, EveryChangeIsCountedAndUndone) {
  ClusterRoom room("owner", "me");
  Object node = Named("a", NodeJson(4, "8Gi"));
  Object other = Named("x", PodJson("a", R"({"cpu":"1"})"));
  Object own = Named("y", PodJson("a", R"({"cpu":"2"})"));
  own.labels["owner"] = "me";
  // In any order.
  EXPECT_TRUE(room.PodChanged(nullptr, &other));
  EXPECT_TRUE(room.NodeChanged(nullptr, &node));
  EXPECT_TRUE(room.PodChanged(nullptr, &own));
  EXPECT_FALSE(room.NodeChanged(&node, &node)) << "a heartbeat";
  EXPECT_EQ(room.limits(), (Resources{{"cores", 4}, {"instances", 10}, {"ram", 8192}}));
  EXPECT_EQ(room.used_by_others(), (Resources{{"cores", 1}, {"instances", 1}}));
  EXPECT_EQ(room.FitOf(Need(1)), ClusterRoom::Fit::kNow);
  EXPECT_EQ(room.FitOf(Need(2)), ClusterRoom::Fit::kLater);
  EXPECT_EQ(room.FitOf(Need(5)), ClusterRoom::Fit::kNever);
  Object cordoned = node;
  cordoned.is_closed = true;
  EXPECT_TRUE(room.NodeChanged(&node, &cordoned));
  EXPECT_EQ(room.used_by_others(), (Resources{{"cores", 2}, {"instances", 9}, {"ram", 8192}}))
      << "all but our own";
  EXPECT_EQ(room.FitOf(Need(1)), ClusterRoom::Fit::kLater);
  EXPECT_TRUE(room.NodeChanged(&cordoned, &node));
  Object ended = other;
  ended.phase = "Succeeded";
  EXPECT_TRUE(room.PodChanged(&other, &ended));
  EXPECT_FALSE(room.PodChanged(&ended, nullptr));
  EXPECT_TRUE(room.PodChanged(&own, nullptr));
  EXPECT_EQ(room.used_by_others(), Resources());
  EXPECT_TRUE(room.NodeChanged(&node, nullptr));
  EXPECT_EQ(room.limits(), (Resources{{"cores", 0}, {"instances", 0}, {"ram", 0}}));
}

TEST(ClusterRoomTest, NodesThatOrdinaryPodsCannotUseDoNotCount) {
  ClusterRoom room("owner", "me");
  Object control =
      Named("c", NodeJson(64, "64Gi", R"({"taints":[{"key":"control-plane","effect":"NoSchedule"}]})"));
  Object unready = Named("u", NodeJson(8, "8Gi", R"({"taints":[{"key":"node.kubernetes.io/not-ready",
                                                                 "effect":"NoExecute"}]})"));
  Object preferred =
      Named("p", NodeJson(2, "8Gi", R"({"taints":[{"key":"x","effect":"PreferNoSchedule"}]})"));
  preferred.labels["disk"] = "ssd";
  for (const Object* node : {&control, &unready, &preferred}) room.NodeChanged(nullptr, node);
  EXPECT_EQ(room.limits().at("cores"), 10);
  EXPECT_EQ(room.used_by_others().at("cores"), 8);
  EXPECT_EQ(room.FitOf(Need(3)), ClusterRoom::Fit::kLater);
  EXPECT_EQ(room.FitOf(Need(9)), ClusterRoom::Fit::kNever);
  PodNeed tolerant = Need(9);
  tolerant.may_tolerate = true;
  EXPECT_EQ(room.FitOf(tolerant), ClusterRoom::Fit::kNow);
  PodNeed chooses = Need(3);
  chooses.node_selector["disk"] = "ssd";
  EXPECT_EQ(room.FitOf(chooses), ClusterRoom::Fit::kNever);
  PodNeed gpu = Need(1);
  gpu.amounts["nvidia.com/gpu"] = 1;
  EXPECT_EQ(room.FitOf(gpu), ClusterRoom::Fit::kNever);
}

TEST(NamespaceRoomTest, TheStrictestQuotaOfEachResourceCounts) {
  std::map<std::string, Object> quotas;
  quotas["a"] = ReadObject(Json(R"({"status":{"hard":{"pods":"10","requests.memory":"8Gi","services":"1"},
                                              "used":{"pods":"7","requests.memory":"1Gi"}}})"));
  quotas["b"] = ReadObject(Json(R"({"status":{"hard":{"pods":"12"},"used":{"pods":"11"}}})"));
  quotas["c"] = ReadObject(Json(R"({"spec":{"scopes":["BestEffort"]},"status":{"hard":{"pods":"0"}}})"));
  NamespaceRoom room = RoomOf(quotas, {{"instances", 4}, {"ram", 2048}});
  EXPECT_EQ(room.limits, (Resources{{"instances", 10}, {"ram", 8192}}));
  // Of 12 pods 11 are used, 4 of them ours: 5 are left for us, of a limit of 10.
  EXPECT_EQ(room.others, (Resources{{"instances", 5}, {"ram", 0}}));
}

class ClusterQuotaTest : public KubernetesTest {
 protected:
  void SetUp() override {
    KubernetesTest::SetUp();
    config->cluster_quota = true;
    imposter.Put("/api/v1/nodes/a", NodeJson(4, "8Gi"));
    imposter.Put("/api/v1/nodes/b", NodeJson(2, "8Gi"));
    SetNeed(1);
  }
  void SetNeed(int cpu) {
    label->requests.cpu = cpu;
    label->need_of_cluster = {{"instances", 1}, {"cores", cpu}, {"ram", 0}};
    label->need = label->need_of_cluster;
  }
  void PutPodOfOthers(const std::string& name, const std::string& node, int cpu) {
    imposter.Put("/api/v1/namespaces/team/pods/" + name,
                 PodJson(node, fmt::format(R"({{"cpu":"{}"}})", cpu)));
  }
  std::string Fault() {
    try {
      provider->QuotaForLabel(*label);
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kInvalid);
      return error.message();
    }
    return "";
  }
};

// A reload may put a label where another one was.
TEST_F(ClusterQuotaTest, NeedsBelongToLabelsNotToTheirAddresses) {
  Start();
  KubernetesLabel other = *label;
  other.name = LabelName("other");
  other.need["cores"] = other.need_of_cluster["cores"] = 2;
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("cores"), 1);
  EXPECT_EQ(provider->QuotaForLabel(other).Get("cores"), 2);
  std::swap(*label, other);
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("cores"), 2);
  EXPECT_EQ(provider->QuotaForLabel(other).Get("cores"), 1);
}

// K8S-84, K8S-85
TEST_F(ClusterQuotaTest, WhatTheNodesHaveAndOthersUseIsFollowed) {
  PutPodOfOthers("x", "a", 3);
  Start();
  EXPECT_TRUE(provider->waits_for_others());
  EXPECT_EQ(provider->AvailableQuota().Get("cores"), 3);
  EXPECT_EQ(provider->AvailableQuota().Get("instances"), 19);
  EXPECT_EQ(provider->UsedByOthers().Get("cores"), 3);
  int before = capacity_changes;
  imposter.Remove("/api/v1/namespaces/team/pods/x");
  time.Advance(2s);
  EXPECT_EQ(provider->AvailableQuota().Get("cores"), 6);
  EXPECT_GT(capacity_changes, before);
  SetNeed(5);
  imposter.Put("/api/v1/nodes/b", NodeJson(3, "8Gi"));
  time.Advance(2s);
  EXPECT_THAT(Fault(), AllOf(HasSubstr("large enough for label pod-small: it needs 5 cores, 1 instances"),
                             HasSubstr("one node has at most 4 cores")));
  imposter.Put("/api/v1/nodes/b", NodeJson(8, "8Gi"));
  time.Advance(2s);
  EXPECT_EQ(Fault(), "") << "at once, not when the label is probed again";
}

// K8S-85: fragments are no room; nothing is made.
TEST_F(ClusterQuotaTest, ALaunchWithoutRoomOnAnyNodeMakesNothing) {
  PutPodOfOthers("x", "a", 3);
  PutPodOfOthers("y", "b", 1);
  SetNeed(2);
  Start();
  EXPECT_THAT(LaunchFails(), AllOf(HasSubstr("no node of the cluster has room now for label pod-small"),
                                   HasSubstr("at most 1 cores"), HasSubstr("free")));
  EXPECT_EQ(last_verdict, Verdict::kQuota);
  EXPECT_EQ(imposter.Count("POST", "/"), 0);
  imposter.Remove("/api/v1/namespaces/team/pods/y");
  time.Advance(1s);
  Launch();
  EXPECT_EQ(last.state, NodeState::kReady);
}

// K8S-86
TEST_F(ClusterQuotaTest, WithoutTheRightTheConfiguredLimitsAloneCount) {
  imposter.is_denied = [](const nodepool::testing::KubernetesImposter::Call& call) {
    return call.path.starts_with("/api/v1/nodes");
  };
  log::Capture log;
  Start();
  EXPECT_EQ(provider->AvailableQuota().Get("cores"), driver::kUnlimited);
  Launch();
  time.Advance(1h);
  int lines = 0;
  for (const log::Record& record : log.records()) {
    if (record.level < log::Level::kWarning) continue;
    EXPECT_THAT(record.text,
                HasSubstr("the configured limits alone count until the account may list and watch it"));
    ++lines;
  }
  EXPECT_EQ(lines, 1);
  imposter.is_denied = nullptr;
  time.Advance(1min);
  EXPECT_EQ(provider->AvailableQuota().Get("cores"), 6) << "without a restart";
}

// K8S-88
TEST_F(ClusterQuotaTest, AnIdleProviderHasTwoMoreWatches) {
  for (int i = 0; i < 300; ++i) PutPodOfOthers(fmt::format("p{}", i), "none", 1);
  Start();
  time.Advance(10min);
  imposter.ClearCalls();
  time.Advance(1h);
  EXPECT_LE(imposter.Count("GET", "/api/v1/nodes"), 13) << "a watch lasts five minutes";
  EXPECT_LE(imposter.Count("GET", "/api/v1/pods"), 13);
  EXPECT_LE(imposter.calls().size(), 13u + 13 + 13) << "and a list of our own namespaces each 300 s";
}

// K8S-88, K8S-83
TEST_F(ClusterQuotaTest, WithoutTheSettingNeitherNodesNorPodsOfOthersAreRead) {
  config->cluster_quota = false;
  Start();
  time.Advance(1h);
  EXPECT_EQ(imposter.Count("GET", "/api/v1/nodes") + imposter.Count("GET", "/api/v1/pods"), 0);
  EXPECT_EQ(provider->AvailableQuota().Get("cores"), driver::kUnlimited);
  EXPECT_FALSE(provider->waits_for_others());
}

// K8S-87
TEST_F(ClusterQuotaTest, QuotasOfThePoolsNamespaces) {
  imposter.Put("/api/v1/namespaces/main", {});
  imposter.Put(
      "/api/v1/namespaces/main/resourcequotas/q",
      Json(R"({"status":{"hard":{"pods":"3","requests.cpu":"4"},"used":{"pods":"1","requests.cpu":"1"}}})"));
  Start(Kind::kOpenshiftPods);
  EXPECT_EQ(provider->AvailableQuota().Get("instances"), 2);
  EXPECT_EQ(provider->AvailableQuota().Get("cores"), 3);
  EXPECT_EQ(provider->UsedByOthers().Get("cores"), 1);
  SetNeed(5);
  imposter.Put("/api/v1/namespaces/main/resourcequotas/q",
               Json(R"({"status":{"hard":{"pods":"3","requests.cpu":"4.5"},"used":{"pods":"3"}}})"));
  time.Advance(2s);
  EXPECT_EQ(provider->AvailableQuota().Get("instances"), 0);
  EXPECT_THAT(Fault(),
              HasSubstr("a ResourceQuota of namespace main is too small for label pod-small: it needs 5 "
                        "cores, 4.5 are allowed"));
}

}  // namespace
}  // namespace nodepool::drivers::kubernetes
