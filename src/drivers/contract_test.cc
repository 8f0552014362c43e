// Every adapter of ours keeps the contract that authors are told of.
#include "driver/testing/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "drivers/example/example_adapter.h"
#include "drivers/fake/fake_adapter.h"
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
  pool->labels[label->name] = std::move(label);
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

// A driver that breaks the contract is found out, check by check.
class SloppyAdapter : public ExampleAdapter {
 public:
  using ExampleAdapter::ExampleAdapter;
  Task<> Delete(driver::cloud::MachineReport& machine, boost::json::value external_id) override {
    if (fails_second_deletion && deleted_.contains(external_id.as_string()))
      throw Error(Verdict::kFail, "no such machine");
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
    driver::cloud::Instance instance = co_await ExampleAdapter::Create(machine, std::move(parameters));
    co_return instance;
  }

  bool fails_second_deletion = false;
  bool forgets_to_delete = false;
  bool forgets_metadata = false;
  bool ignores_cancellation = false;
  double needs = 1;
  Loop* loop = nullptr;

 private:
  std::set<boost::json::string> deleted_;
};

class SloppyTest : public ContractTest {
 protected:
  std::set<std::string> Failures() {
    adapter.loop = &time.loop();
    auto label = std::make_shared<ExampleLabel>();
    label->name = LabelName("small");
    std::set<std::string> failures;
    for (const contract::CheckResult& result : Run(SubjectOf(adapter, label))) {
      if (result.status == contract::CheckResult::Status::kFailed) failures.insert(result.check);
    }
    return failures;
  }
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

}  // namespace
}  // namespace nodepool::drivers
