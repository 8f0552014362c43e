#include "drivers/kubernetes/config/kubernetes_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/schema/section.h"
#include "config/yaml/yaml_reader.h"
#include "driver/cloud/adapter.h"
#include "drivers/kubernetes/names.h"

namespace nodepool::drivers::kubernetes {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class KubernetesConfigTest : public ::testing::Test {
 protected:
  KubernetesConfigTest() {
    for (const char* name : {"pod", "other", "Bad_Name"})
      config_.labels[LabelName(name)].name = LabelName(name);
  }

  std::shared_ptr<const KubernetesConfig> Load(const std::string& text, Kind kind = Kind::kKubernetes) {
    static const std::map<Kind, std::string> names = {{Kind::kKubernetes, "kubernetes"},
                                                      {Kind::kOpenshift, "openshift"},
                                                      {Kind::kOpenshiftPods, "openshiftpods"}};
    config::ProviderSection section{ProviderName("p"), names.at(kind), *config::ParseYaml(text)};
    return LoadKubernetesConfig(kind, section, config_);
  }
  std::string ErrorOf(const std::string& text, Kind kind = Kind::kKubernetes) {
    try {
      Load(text, kind);
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }
  static const driver::PoolConfig& PoolOf(const KubernetesConfig& config, const char* name = "main") {
    return *config.pools.at(PoolName(name));
  }
  static const KubernetesLabel& LabelOf(const driver::PoolConfig& pool, const char* name = "pod") {
    return driver::cloud::As<KubernetesLabel>(*pool.labels.at(LabelName(name)));
  }
  // The label `pod` of a pool with `pool` among its settings.
  KubernetesLabel Label(const std::string& label, const std::string& pool = "priority: 1",
                        Kind kind = Kind::kKubernetes) {
    loaded_ = Load(
        "{name: p, context: c, pools: [{name: main, " + pool + ", labels: [{name: pod, " + label + "}]}]}",
        kind);
    return LabelOf(PoolOf(*loaded_));
  }

  config::Config config_;
  std::shared_ptr<const KubernetesConfig> loaded_;
};

// What config-validate says on a provider section; empty: it is accepted.
std::string FaultOf(Kind kind, const std::string& text) {
  std::vector<config::Problem> problems =
      config::Validate(*config::ParseYaml(text), config::WithCommonSettings(SchemaOf(kind)));
  return problems.empty() ? "" : problems.front().message;
}

std::string WithLabel(Kind kind, std::string label) {
  if (kind != Kind::kOpenshiftPods && label.find("type:") == std::string::npos) label += ", type: pod";
  return "{name: p, driver: d, context: c, pools: [{name: main, labels: [{name: pod, " + label + "}]}]}";
}

constexpr Kind kKinds[] = {Kind::kKubernetes, Kind::kOpenshift, Kind::kOpenshiftPods};

// K8S-1
TEST(KubernetesSchemaTest, ASpecExcludesWhatItReplaces) {
  for (Kind kind : kKinds) {
    EXPECT_EQ(FaultOf(kind, WithLabel(kind,
                                      "spec: {k8s: goes here}, labels: {a: b}, dynamic-labels: {c: d}, "
                                      "annotations: {e: f}")),
              "");
    for (const char* other :
         {"image: x", "cpu: 1", "python-path: auto", "shell-type: sh", "extra-resources: {a: 1}", "env: []",
          "memory: 1", "storage: 1", "cpu-limit: 1", "gpu: 1.0", "gpu-resource: g", "node-selector: {}",
          "privileged: true", "scheduler-name: s", "volumes: []", "volume-mounts: []",
          "image-pull: Always"}) {
      EXPECT_NE(FaultOf(kind, WithLabel(kind, std::string("spec: {a: b}, ") + other)), "") << other;
    }
  }
}

// K8S-2, K8S-3
TEST(KubernetesSchemaTest, AcceptsWhatThePythonValidatorAccepts) {
  for (Kind kind : kKinds) {
    for (const char* label :
         {"image: i, image-pull: Whatever", "image: i, gpu-resource: x", "image: i, gpu: 1.0",
          "image: i, labels: {a: 1}", "image: i, node-selector: {a: 1}", "image: i, cpu: true",
          "image: i, env: []", "spec: {}", "image: i, env: [{name: a, value: b}]"}) {
      EXPECT_EQ(FaultOf(kind, WithLabel(kind, label)), "") << label;
    }
    EXPECT_EQ(FaultOf(kind, "{name: p, driver: d, context: c, pools: []}"), "");
    EXPECT_EQ(FaultOf(kind, "{name: p, driver: d, context: c, pools: [{name: m, labels: []}]}"), "");
  }
  for (Kind kind : {Kind::kKubernetes, Kind::kOpenshift}) {
    for (const char* label : {"type: banana", "type: pod", "type: namespace, image: i, cpu: 1",
                              "type: namespace, spec: {a: b}"}) {
      EXPECT_EQ(FaultOf(kind, WithLabel(kind, label)), "") << label;
    }
  }
  for (Kind kind : {Kind::kOpenshift, Kind::kOpenshiftPods})
    EXPECT_EQ(FaultOf(kind, WithLabel(kind, "image: i, image-pull-secrets: [x]")), "");
  EXPECT_EQ(FaultOf(Kind::kKubernetes, "{name: p, driver: d, max-servers: 2, pools: []}"), "");
  EXPECT_EQ(FaultOf(Kind::kOpenshift, "{name: p, driver: d, context: c, max-projects: 2, pools: []}"), "");
  EXPECT_EQ(FaultOf(Kind::kOpenshiftPods, "{name: p, driver: d, context: c, max-pods: 2, pools: []}"), "");
}

// K8S-2, K8S-3
TEST(KubernetesSchemaTest, RefusesWhatThePythonValidatorRefuses) {
  for (Kind kind : kKinds) {
    for (const char* label :
         {"spec: text", "spec: ", "image: i, gpu: 1", "image: i, cpu: 0.5", "image: i, cpu: '2'",
          "image: i, privileged: 'yes'", "image: i, volumes: {a: b}", "image: i, env: [{name: a}]",
          "image: i, env: [{name: a, value: 1}]", "image: i, env: [{name: a, value: b, valueFrom: c}]",
          "image: i, env: ", "image: i, unknown: 1"}) {
      EXPECT_NE(FaultOf(kind, WithLabel(kind, label)), "") << label;
    }
    for (const char* provider :
         {"launch-retries: '3', pools: []", "context: 3, pools: []", "max-resources: {a: 1.5}, pools: []",
          "launch-timeout: 3, pools: []", "boot-timeout: 3, pools: []", "rate: 1, pools: []",
          "pools: [{name: m}]", "pools: [{labels: []}]", "pools: [{name: m, labels: }]", "launch-retries: 3",
          "pools: [{name: m, labels: [], ignore-provider-quota: true}]",
          "pools: [{name: m, labels: [], default-label-extra_resources: {a: 1}}]"}) {
      std::string context = std::string(provider).find("context:") == std::string::npos ? "context: c, " : "";
      EXPECT_NE(FaultOf(kind, "{name: p, driver: d, " + context + provider + "}"), "") << provider;
    }
  }
  EXPECT_NE(FaultOf(Kind::kKubernetes, WithLabel(Kind::kKubernetes, "image-pull-secrets: []")), "");
  EXPECT_NE(FaultOf(Kind::kOpenshiftPods, WithLabel(Kind::kOpenshiftPods, "type: pod, image: i")), "");
  EXPECT_NE(FaultOf(Kind::kOpenshiftPods, WithLabel(Kind::kOpenshiftPods, "labels: {a: b}")), "")
      << "no image";
  EXPECT_NE(FaultOf(Kind::kKubernetes, "{name: p, driver: d, pools: [{name: m, labels: [{name: l}]}]}"), "");
  EXPECT_NE(FaultOf(Kind::kKubernetes, "{name: p, driver: d, max-projects: 1, pools: []}"), "");
  EXPECT_NE(FaultOf(Kind::kOpenshift, "{name: p, driver: d, context: c, max-servers: 1, pools: []}"), "");
}

// K8S-4
TEST_F(KubernetesConfigTest, OpenshiftNeedsAContext) {
  for (Kind kind : {Kind::kOpenshift, Kind::kOpenshiftPods}) {
    EXPECT_NE(FaultOf(kind, "{name: p, driver: d, pools: []}"), "");
    EXPECT_THAT(ErrorOf("{name: p, pools: []}", kind), HasSubstr("context"));
  }
  EXPECT_EQ(Load("{name: p, pools: []}")->context, std::nullopt);
}

// K8S-5, K8S-6
TEST_F(KubernetesConfigTest, ThePoolsLimitsAreTheProvidersUnlessTheyHaveTheirOwn) {
  std::string pools = ", pools: [{name: a, labels: []}, {name: b, max-servers: 5, labels: []}]}";
  auto servers = [&](const std::string& limits, Kind kind, const char* pool) {
    return PoolOf(*Load("{name: p, context: c, " + limits + pools, kind), pool).max_servers;
  };
  EXPECT_EQ(servers("max-servers: 2", Kind::kKubernetes, "a"), 2);
  EXPECT_EQ(servers("max-servers: 2", Kind::kKubernetes, "b"), 5);
  EXPECT_EQ(servers("max-servers: 2, max-projects: 3", Kind::kOpenshift, "a"), 3);
  EXPECT_EQ(servers("max-servers: 2", Kind::kOpenshift, "a"), 2);
  EXPECT_EQ(servers("max-servers: 2, max-projects: 3, max-pods: 4", Kind::kOpenshiftPods, "a"), 4);
  EXPECT_EQ(servers("max-projects: 3", Kind::kOpenshiftPods, "a"), 3);
  auto config = Load(
      "{name: p, max-cores: 4, max-ram: 100, max-resources: {gpu: 1, disk: 2}, pools: [{name: main, max-ram: "
      "50, "
      "max-resources: {disk: 3}, labels: []}]}");
  EXPECT_THAT(PoolOf(*config).limits,
              ElementsAre(Pair("cores", 4), Pair("disk", 3), Pair("gpu", 1), Pair("ram", 50)));
}

TEST_F(KubernetesConfigTest, Defaults) {
  auto config = Load("{name: p, pools: [{name: main, labels: [{name: pod, type: pod, image: i}]}]}");
  EXPECT_EQ(config->launch_timeout, std::chrono::seconds(300));
  EXPECT_EQ(config->launch_retries, 3);
  EXPECT_EQ(PoolOf(*config).max_servers, driver::kUnlimited);
  const KubernetesLabel& label = LabelOf(PoolOf(*config));
  EXPECT_EQ(label.image_pull, "IfNotPresent");
  EXPECT_EQ(label.connection.connection_type, "kubectl");
  EXPECT_EQ(label.connection.python_path, "auto");
  EXPECT_EQ(label.connection.shell_type, std::nullopt);
  EXPECT_EQ(label.fault, "");
  EXPECT_THAT(label.need, ElementsAre(Pair("cores", 0), Pair("instances", 1), Pair("ram", 0)));
}

TEST_F(KubernetesConfigTest, TypesOfLabels) {
  EXPECT_FALSE(Label("type: namespace").has_pod);
  EXPECT_EQ(Label("type: namespace").connection.connection_type, "namespace");
  EXPECT_TRUE(Label("type: banana, image: i").has_pod);
  EXPECT_FALSE(Label("type: banana", "priority: 1", Kind::kOpenshift).has_pod);
  EXPECT_EQ(Label("type: project", "priority: 1", Kind::kOpenshift).connection.connection_type, "project");
  EXPECT_TRUE(Label("image: i", "priority: 1", Kind::kOpenshiftPods).has_pod);
}

// K8S-8
TEST_F(KubernetesConfigTest, LimitsAreTheLabelsThenThePoolsThenTheRequests) {
  std::string pool =
      "default-label-cpu: 2, default-label-cpu-limit: 8, default-label-memory: 1024, "
      "default-label-memory-limit: 4196, default-label-storage: 10, default-label-storage-limit: 40";
  KubernetesLabel label = Label("type: pod, image: i", pool);
  EXPECT_EQ(label.requests.cpu, 2);
  EXPECT_EQ(label.limits.cpu, 8);
  EXPECT_EQ(label.limits.memory, 4196);
  EXPECT_EQ(label.limits.storage, 40);
  label = Label(
      "type: pod, image: i, cpu: 4, memory: 2048, storage: 20, cpu-limit: 4, memory-limit: 2048, "
      "storage-limit: 20",
      pool);
  EXPECT_EQ(label.requests.memory, 2048);
  EXPECT_EQ(label.limits.cpu, 4);
  EXPECT_EQ(label.limits.storage, 20);
  label = Label("type: pod, image: i, cpu: 4", "default-label-memory: 7");
  EXPECT_EQ(label.limits.cpu, 4);
  EXPECT_EQ(label.limits.memory, 7);
  EXPECT_EQ(label.limits.storage, std::nullopt);
}

// K8S-7, K8S-14
TEST_F(KubernetesConfigTest, TheNeedOfALabel) {
  std::string pool =
      "default-label-cpu: 2, default-label-memory: 1024, default-label-storage: 10, "
      "default-label-extra-resources: {license: 1, seats: 3}";
  KubernetesLabel label =
      Label("type: pod, image: i, gpu: 0.5, gpu-resource: nvidia.com/gpu, extra-resources: {seats: 4}", pool);
  EXPECT_THAT(label.need, ElementsAre(Pair("cores", 2), Pair("ephemeral-storage", 10), Pair("instances", 1),
                                      Pair("license", 1), Pair("nvidia.com/gpu", 0.5), Pair("ram", 1024),
                                      Pair("seats", 4)));
  EXPECT_EQ(Label("type: namespace", "default-label-extra_resources: {seats: 2}").need.at("seats"), 2);
}

// driver-kubernetes.md 2.4
TEST_F(KubernetesConfigTest, ASpecNeedsWhatItsContainersRequest) {
  KubernetesLabel label = Label(
      "type: pod, spec: {1: one, containers: [{resources: {requests: {cpu: 500m, memory: 2Gi, "
      "ephemeral-storage: 10M, nvidia.com/gpu: 1}}}, {resources: {requests: {cpu: 1}}}, text, {}]}",
      "default-label-cpu: 8");
  EXPECT_THAT(label.need, ElementsAre(Pair("cores", 1.5), Pair("ephemeral-storage", 10), Pair("instances", 1),
                                      Pair("nvidia.com/gpu", 1), Pair("ram", 2048)));
  EXPECT_EQ(label.spec.at("1"), "one");
  EXPECT_EQ(label.fault, "");
}

TEST_F(KubernetesConfigTest, ADateInASpecIsRefused) {
  EXPECT_THAT(ErrorOf("{name: p, pools: [{name: main, labels: [{name: pod, type: pod, "
                      "spec: {a: [{b: 2026-01-02}]}}]}]}"),
              HasSubstr("2026-01-02 is a date"));
}

// K8S-9
TEST_F(KubernetesConfigTest, NumbersInLabelsBecomeTheirText) {
  KubernetesLabel label = Label(
      "type: pod, image: i, labels: {a: 010, b: yes}, annotations: {c: 1.50}, node-selector: {d: 7}, "
      "dynamic-labels: {e: 8}");
  EXPECT_THAT(label.labels, ElementsAre(Pair("a", "010"), Pair("b", "yes")));
  EXPECT_THAT(label.annotations, ElementsAre(Pair("c", "1.50")));
  EXPECT_THAT(label.node_selector, ElementsAre(Pair("d", "7")));
  EXPECT_THAT(label.dynamic_labels, ElementsAre(Pair("e", "8")));
}

// K8S-52
TEST_F(KubernetesConfigTest, LabelsThatTheClusterWouldRefuseHaveAFault) {
  EXPECT_THAT(Label("type: pod").fault, HasSubstr("neither an image nor a spec"));
  EXPECT_THAT(Label("type: pod, image: i, labels: {a: 'not good'}").fault, HasSubstr("label a"));
  auto fault = [this](const std::string& pool, const std::string& label, Kind kind = Kind::kKubernetes) {
    auto config = Load("{name: p, context: c, pools: [{name: " + pool + ", labels: [{name: " + label +
                           ", type: pod, image: i}]}]}",
                       kind);
    return LabelOf(PoolOf(*config, pool.c_str()), label.c_str()).fault;
  };
  EXPECT_THAT(fault("main", "Bad_Name"), HasSubstr("Bad_Name cannot be a pod's name"));
  EXPECT_THAT(fault("Main", "pod"), HasSubstr("Main"));
  EXPECT_EQ(fault(std::string(52, 'a'), "pod"), "");
  EXPECT_THAT(fault(std::string(53, 'a'), "pod"), HasSubstr("at most 52"));
  EXPECT_THAT(fault("kube-ci", "pod", Kind::kOpenshift), HasSubstr("reserves"));
  EXPECT_EQ(fault("kube-ci", "pod"), "");
}

// driver-kubernetes.md 4.2
TEST(NameForNodeTest, HasPlaceForTheIdAndTheMarkAndIsReadBack) {
  const std::string mark = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
  EXPECT_EQ(NameForNode("main", "0000000017", mark), "main-0000000017-0a1b2c3d");
  std::string longest(52, 'a');
  std::string name = NameForNode(longest, "0000000017", mark);
  EXPECT_TRUE(IsDnsLabel(name)) << name;
  EXPECT_EQ(NodeIdIn(name, longest), "0000000017");
  EXPECT_EQ(NodeIdIn(longest + "-0000000017", longest), "0000000017") << "of the Python implementation";
  EXPECT_EQ(NodeIdIn("main-0000000017", "main"), "0000000017");
  for (const char* other : {"main", "main-17", "main-0000000017-0a1b2c3", "main-0000000017-0a1b2c3x",
                            "main-000000001x-0a1b2c3d", "main-b-0000000017", "main-00000000170-a1b2c3d"})
    EXPECT_EQ(NodeIdIn(other, "main"), "") << other;
}

TEST_F(KubernetesConfigTest, UnknownTopLevelLabel) {
  EXPECT_THAT(ErrorOf("{name: p, pools: [{name: main, labels: [{name: pods, type: pod, image: i}]}]}"),
              HasSubstr("did you mean 'pod'"));
}

TEST(QuantityTest, Parse) {
  EXPECT_EQ(ParseQuantity("2"), 2);
  EXPECT_EQ(ParseQuantity("500m"), 0.5);
  EXPECT_EQ(ParseQuantity("2Gi"), 2147483648.0);
  EXPECT_EQ(ParseQuantity("1E"), 1e18);
  EXPECT_EQ(ParseQuantity("1e3"), 1000);
  EXPECT_EQ(ParseQuantity("1.5k"), 1500);
  for (const char* text : {"", "m", "1x", "-1", "1 Gi", "inf", "1e999"})
    EXPECT_EQ(ParseQuantity(text), std::nullopt) << text;
}

// K8S-18
TEST(LabelValueTest, WhatIsNotAllowedIsReplaced) {
  EXPECT_EQ(ToLabelValue("tenant-1"), "tenant-1");
  EXPECT_EQ(ToLabelValue("my tenant"), "my-tenant");
  EXPECT_EQ(ToLabelValue("[a, b]"), "a--b");
  EXPECT_EQ(ToLabelValue(std::string(80, 'x')), std::string(63, 'x'));
  EXPECT_EQ(ToLabelValue("--"), "");
  EXPECT_EQ(ToLabelValue(""), "");
  for (const char* text : {"ä b", "_a_", "x y.", "...", "a/b:c"})
    EXPECT_TRUE(IsLabelValue(ToLabelValue(text))) << text;
}

}  // namespace

}  // namespace nodepool::drivers::kubernetes
