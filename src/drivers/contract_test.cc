// All our adapters keep the documented contract of adapters.
#include "driver/testing/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/scope_exit.h"
#include "drivers/example/example_adapter.h"
#include "drivers/fake/fake_driver.h"
#include "drivers/gce/gce_fixture_for_test.h"
#include "drivers/kubernetes/kubernetes_fixture_for_test.h"
#include "drivers/openstack/openstack_fixture_for_test.h"

namespace nodepool::drivers {
namespace {

namespace contract = driver::testing;

constexpr Duration kLong = std::chrono::hours(1000);

void ExpectKept(const std::vector<contract::CheckResult>& results, std::set<std::string> skipped) {
  EXPECT_GE(results.size(), 12u);
  for (const contract::CheckResult& result : results) {
    EXPECT_NE(result.status, contract::CheckResult::Status::kFailed) << result.check << ": " << result.detail;
    EXPECT_EQ(result.status == contract::CheckResult::Status::kSkipped, skipped.contains(result.check))
        << result.check;
  }
}

std::shared_ptr<driver::PoolConfig> PoolOf(std::shared_ptr<driver::LabelConfig> label) {
  auto pool = std::make_shared<driver::PoolConfig>();
  pool->name = PoolName("main");
  pool->Offer(std::move(label));
  return pool;
}

class ContractTest : public ::testing::Test {
 protected:
  contract::Subject SubjectOf(driver::cloud::Adapter& adapter, std::shared_ptr<driver::LabelConfig> label) {
    return {time.loop(), adapter, ProviderName("contract"), PoolOf(label), label};
  }
  std::vector<contract::CheckResult> Run(contract::Subject subject) {
    return time.Run(contract::RunContract(std::move(subject)), kLong);
  }

  testing::VirtualTime time;
  SeededRandom random{1};
};

TEST_F(ContractTest, Example) {
  auto config = std::make_shared<ExampleConfig>();
  ExampleAdapter adapter(config);
  auto label = std::make_shared<ExampleLabel>();
  label->name = LabelName("small");
  ExpectKept(Run(SubjectOf(adapter, label)), {"a cloud that does not answer"});
}

TEST_F(ContractTest, Fake) {
  auto config = std::make_shared<FakeConfig>();
  config->simulation.delete_latency = std::chrono::seconds(1);
  FakeCloud cloud(time.loop(), random, config->simulation);
  FakeAdapter adapter(cloud, config);
  auto label = std::make_shared<FakeLabel>();
  label->name = LabelName("small");
  label->min_ram = 8192;
  contract::Subject subject = SubjectOf(adapter, label);
  subject.stall = [&cloud](bool is_stalled) { is_stalled ? cloud.PauseCreates() : cloud.ResumeCreates(); };
  ExpectKept(Run(std::move(subject)), {});
  EXPECT_TRUE(cloud.servers().empty());
}

// A driver that breaks the contract is detected, check by check.
class SloppyAdapter : public ExampleAdapter {
 public:
  using ExampleAdapter::ExampleAdapter;
  Task<> Delete(driver::cloud::MachineReport& machine, boost::json::value external_id) override {
    if (fails_second_deletion && deleted_.contains(external_id.as_string()))
      throw Error(Verdict::kFail, "no such machine");
    if (wants_numbers) machine.SetState(std::to_string(external_id.as_int64()));
    deleted_.insert(external_id.as_string());
    if (!forgets_to_delete) co_await ExampleAdapter::Delete(machine, std::move(external_id));
  }
  Task<std::vector<driver::cloud::Resource>> ListResources() override {
    std::vector<driver::cloud::Resource> resources = co_await ExampleAdapter::ListResources();
    if (forgets_metadata) {
      for (auto& resource : resources) resource.metadata.erase("nodepool_pool_name");
    }
    co_return resources;
  }
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig&) override {
    return driver::QuotaInformation::Amount({{"instances", needs}});
  }
  Task<driver::cloud::Instance> Create(driver::cloud::MachineReport& machine,
                                       driver::cloud::CreateParameters parameters) override {
    if (ignores_cancellation) {
      co_await IgnoreCancellation();
      co_await loop->SleepFor(std::chrono::hours(1));
    }
    if (refuses_creations) throw Error(Verdict::kFail, "no hypervisor is free");
    if (refuses_two && std::exchange(is_creating_, true)) throw Error(Verdict::kFail, "one after the other");
    ScopeExit created([this] { is_creating_ = false; });
    driver::cloud::Instance instance = co_await ExampleAdapter::Create(machine, std::move(parameters));
    if (boot_time > Duration(0)) co_await loop->SleepFor(boot_time);
    co_return instance;
  }

  bool fails_second_deletion = false;
  bool forgets_to_delete = false;
  bool forgets_metadata = false;
  bool ignores_cancellation = false;
  bool wants_numbers = false;
  bool refuses_creations = false;
  bool refuses_two = false;
  Duration boot_time{0};
  double needs = 1;
  Loop* loop = nullptr;

 private:
  std::set<boost::json::string> deleted_;
  bool is_creating_ = false;
};

class Follower : public contract::ContractObserver {
 public:
  void CheckBegins(const std::string& check) override { lines.push_back("begins " + check); }
  void CheckEnded(const contract::CheckResult& result) override { lines.push_back("ended " + result.check); }
  void MachineLeft(const std::string& machine) override { left.push_back(machine); }

  std::vector<std::string> lines;
  std::vector<std::string> left;
};

class SloppyTest : public ContractTest {
 protected:
  contract::Subject Sloppy() {
    adapter.loop = &time.loop();
    auto label = std::make_shared<ExampleLabel>();
    label->name = LabelName("small");
    contract::Subject subject = SubjectOf(adapter, label);
    subject.observer = &follower;
    return subject;
  }
  // What was wrong, by check.
  std::map<std::string, std::string> Details() {
    std::map<std::string, std::string> details;
    for (const contract::CheckResult& result : Run(Sloppy())) {
      if (result.status == contract::CheckResult::Status::kFailed) details[result.check] = result.detail;
    }
    return details;
  }
  std::set<std::string> Failures() {
    std::set<std::string> failures;
    for (const auto& [check, detail] : Details()) failures.insert(check);
    return failures;
  }
  // Cancels the run when the first machine has been made.
  void CancelTheRun() {
    TaskGroup group(time.loop(), log::Logger("test"));
    group.Spawn("the contract", Discard(contract::RunContract(Sloppy())));
    time.Advance(std::chrono::seconds(10));
    time.Run(group.Stop());
  }
  static Task<> Discard(Task<std::vector<contract::CheckResult>> run) { co_await std::move(run); }

  Follower follower;
  SloppyAdapter adapter{std::make_shared<ExampleConfig>()};
};

TEST_F(SloppyTest, SecondDeletionThatFails) {
  adapter.fails_second_deletion = true;
  EXPECT_THAT(Failures(), ::testing::Contains("deletion is idempotent"));
}
TEST_F(SloppyTest, DeletionThatDoesNothing) {
  adapter.forgets_to_delete = true;
  EXPECT_THAT(Failures(), ::testing::Contains("lists agree with what happened"));
}
TEST_F(SloppyTest, MetadataThatIsLost) {
  adapter.forgets_metadata = true;
  EXPECT_EQ(Failures(), std::set<std::string>{"metadata comes back"});
}
TEST_F(SloppyTest, QuotaThatDoesNotAddUp) {
  adapter.needs = 2;
  EXPECT_EQ(Failures(), std::set<std::string>{"quota adds up"});
}
TEST_F(SloppyTest, CreationThatCannotBeStopped) {
  adapter.ignores_cancellation = true;
  EXPECT_THAT(Failures(), ::testing::Contains("creations that are told to stop at any await"));
}

TEST_F(SloppyTest, EachCheckIsAnnouncedWhenItBeginsAndEnds) {
  std::vector<std::string> expected;
  for (const contract::CheckResult& result : Run(Sloppy())) {
    expected.push_back("begins " + result.check);
    expected.push_back("ended " + result.check);
  }
  EXPECT_EQ(follower.lines, expected);
}
TEST_F(SloppyTest, AfterAFailedFirstCreationNothingElseRuns) {
  adapter.refuses_creations = true;
  std::vector<contract::CheckResult> results = Run(Sloppy());
  EXPECT_EQ(results.front().status, contract::CheckResult::Status::kFailed);
  EXPECT_EQ(results.front().detail, "Create of np9000000001: no hypervisor is free");
  EXPECT_EQ(
      std::ranges::count(results, contract::CheckResult::Status::kNotRun, &contract::CheckResult::status),
      11);
}
TEST_F(SloppyTest, TheCauseOfACallThatFailed) {
  adapter.wants_numbers = true;
  EXPECT_THAT(Details()["deletion is idempotent"],
              ::testing::StartsWith("Delete of np9000000005 (id test-np9000000005): "));
}
TEST_F(SloppyTest, TheCauseWhenOneOfTwoCreationsFails) {
  adapter.refuses_two = true;
  adapter.boot_time = std::chrono::seconds(1);
  EXPECT_THAT(Details()["two machines at a time"],
              ::testing::MatchesRegex(
                  "one of two creations at a time failed: Create of np[0-9]+: one after the other"));
}
TEST_F(SloppyTest, ACancelledRunRemovesItsMachines) {
  adapter.boot_time = std::chrono::hours(1);
  CancelTheRun();
  EXPECT_TRUE(time.Run(adapter.ListInstances()).empty());
  EXPECT_TRUE(follower.left.empty());
}
TEST_F(SloppyTest, ACancelledRunNamesWhatItCannotRemove) {
  adapter.boot_time = std::chrono::hours(1);
  adapter.forgets_to_delete = true;
  adapter.wants_numbers = true;
  SteadyTime begun = time.loop().SteadyNow();
  CancelTheRun();
  EXPECT_EQ(follower.left, std::vector<std::string>{"np9000000001: id test-np9000000001"});
  EXPECT_LE(time.loop().SteadyNow() - begun, std::chrono::seconds(75));
}

namespace in_openstack {

class OpenstackContractTest : public openstack::OpenstackTest {};

TEST_F(OpenstackContractTest, Openstack) {
  Start();
  contract::Subject subject{time.loop(), *adapter, ProviderName("contract"),
                            config->pools.at(PoolName("main")),
                            config->pools.at(PoolName("main"))->labels.at(LabelName("small"))};
  ExpectKept(time.Run(contract::RunContract(std::move(subject)), kLong), {"a cloud that does not answer"});
}

}  // namespace in_openstack

namespace in_gce {

class GceContractTest : public gce::GceTest {};

// GCE-24
TEST_F(GceContractTest, Gce) {
  Start();
  contract::Subject subject{time.loop(), *adapter, ProviderName("gce"), config->pools.at(PoolName("main")),
                            config->pools.at(PoolName("main"))->labels.at(LabelName("small"))};
  subject.stall = [this](bool is_stalled) { google.is_silent = is_stalled; };
  ExpectKept(time.Run(contract::RunContract(std::move(subject)), kLong), {});
  EXPECT_TRUE(google.instances.empty());
}

}  // namespace in_gce

namespace in_kubernetes {

class KubernetesContractTest : public kubernetes::KubernetesTest {
 protected:
  void Keep(kubernetes::Kind kind) {
    imposter.Put("/api/v1/namespaces/main", {});
    Start(kind);
    contract::Subject subject{time.loop(), *adapter, ProviderName("cluster"),
                              config->pools.at(PoolName("main")),
                              config->pools.at(PoolName("main"))->labels.at(LabelName("pod-small"))};
    subject.stall = [this](bool is_stalled) { imposter.is_silent = is_stalled; };
    ExpectKept(time.Run(contract::RunContract(std::move(subject)), kLong), {});
    EXPECT_EQ(imposter.Namespaces(), std::vector<std::string>{"main"});
  }
};

TEST_F(KubernetesContractTest, Kubernetes) { Keep(kubernetes::Kind::kKubernetes); }
TEST_F(KubernetesContractTest, Openshift) { Keep(kubernetes::Kind::kOpenshift); }
TEST_F(KubernetesContractTest, OpenshiftPods) { Keep(kubernetes::Kind::kOpenshiftPods); }

}  // namespace in_kubernetes

}  // namespace
}  // namespace nodepool::drivers
