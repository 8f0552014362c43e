// What is of another installation, or of a node that had the same id before, is neither used nor deleted.
#include "async/task_group.h"
#include "base/json_fields.h"
#include "driver/cloud/metadata.h"
#include "driver/testing/recorder.h"
#include "drivers/kubernetes/kubernetes_fixture_for_test.h"

namespace nodepool::drivers::kubernetes {
namespace {

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
