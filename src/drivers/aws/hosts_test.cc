// Nodes on dedicated hosts (driver-aws.md 10).
#include "driver/testing/contract.h"
#include "drivers/aws/aws_fixture_for_test.h"
#include "drivers/aws/compute/quota_codes.h"

namespace nodepool::drivers::aws {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AwsHostTest : public AwsTest {
 protected:
  AwsHostTest() { ec2.quotas["ec2"]["L-8B7BF662"] = 4; }
  void SetUp() override {
    AwsTest::SetUp();
    label->dedicated_host = true;
    label->instance_types = {"m5.large"};
    pool->places = {{"us-west-2a", std::nullopt}};
  }
  int HeldHosts() const {
    return static_cast<int>(
        std::ranges::count_if(ec2.hosts, [](const auto& one) { return !one.second.is_released; }));
  }
};

TEST_F(AwsHostTest, TheContractOfAdapters) {
  Start();
  driver::testing::Subject subject{time.loop(), *adapter, ProviderName("ec2"),
                                   config->pools.at(PoolName("main")),
                                   config->pools.at(PoolName("main"))->labels.at(LabelName("small"))};
  subject.stall = [this](bool is_stalled) { ec2.is_silent = is_stalled; };
  for (const auto& result : time.Run(driver::testing::RunContract(std::move(subject)), 1000h)) {
    EXPECT_EQ(result.status, driver::testing::CheckResult::Status::kPassed)
        << result.check << ": " << result.detail;
  }
  EXPECT_EQ(Living(), 0);
  EXPECT_EQ(HeldHosts(), 0);
}

// AWS-21
TEST_F(AwsHostTest, AHostIsAllocatedUsedAndReleased) {
  label->tags = {{"team", "ci"}};
  Start();
  Launch();
  const std::string host = ec2.hosts.begin()->first;
  const std::string instance = ec2.instances.begin()->first;
  EXPECT_EQ(last.external_id, (boost::json::object{{"instance", instance}, {"host", host}}));
  EXPECT_EQ(last.resources, (Resources{{"L-8B7BF662", 1}, {"cores", 0}, {"instances", 1}, {"ram", 0}}));
  testing::Ec2Imposter::Parameters call = ec2.Last("AllocateHosts");
  EXPECT_EQ(call["AutoPlacement"], "off");
  EXPECT_EQ(call["AvailabilityZone"], "us-west-2a");
  EXPECT_EQ(call["InstanceType"], "m5.large");
  EXPECT_EQ(call["Quantity"], "1");
  EXPECT_EQ(call["TagSpecification.1.ResourceType"], "dedicated-host");
  EXPECT_EQ(ec2.hosts.at(host).tags.at("team"), "ci");
  EXPECT_EQ(ec2.hosts.at(host).tags.at("nodepool_node_id"), last_id.str());
  call = ec2.Last("RunInstances");
  EXPECT_EQ(call["Placement.Tenancy"], "host");
  EXPECT_EQ(call["Placement.HostId"], host);
  EXPECT_EQ(call["Placement.Affinity"], "host");
  Delete();
  EXPECT_EQ(Living(), 0);
  EXPECT_EQ(HeldHosts(), 0) << "it is refused while the instance is there";
}

// AWS-22
TEST_F(AwsHostTest, AFailedLaunchReleasesItsHost) {
  config->launch_retries = 2;
  Start();
  FailNext("RunInstances", 500, "InsufficientCapacityOnHost", 2);
  LaunchFails();
  EXPECT_THAT(results, ElementsAre("error.capacity", "error.capacity"));
  EXPECT_EQ(ec2.hosts.size(), 2u);
  EXPECT_EQ(HeldHosts(), 1) << "the host of the first attempt is released before the second";
  Delete();
  EXPECT_EQ(HeldHosts(), 0);
  FailNext("AllocateHosts", 400, "InvalidParameterValue", 2);
  LaunchFails();
  EXPECT_EQ(last.external_id, boost::json::value(nullptr));
}

// AWS-23
TEST_F(AwsHostTest, TheQuotaOfHosts) {
  Start();
  EXPECT_EQ(provider->AvailableQuota().Get("L-8B7BF662"), 4);
  FailNext("AllocateHosts", 400, "HostLimitExceeded");
  EXPECT_EQ(LaunchFails().verdict(), Verdict::kQuota);
  std::string foreign = AddInstance({}, "m5.large");
  ec2.instances[foreign].host = "h-foreign";
  provider->InvalidateQuota();
  time.Advance(10s);
  EXPECT_EQ(provider->AvailableQuota().Get("L-8B7BF662"), 3);
}

TEST_F(AwsHostTest, AnInstanceThatNoRecordNamesDoesNotKeepTheHost) {
  Start();
  Launch();
  const std::string host = ec2.hosts.begin()->first;
  last.external_id = ExternalId({"", host});
  Delete();
  EXPECT_EQ(Living(), 0);
  EXPECT_EQ(HeldHosts(), 0);
  last.external_id = ExternalId({"", "h-none"});
  Delete();
}

// AWS-24
TEST_F(AwsHostTest, AHostThatCannotBeReleasedYet) {
  Start();
  Launch();
  ec2.releases_refused = 2;
  for (int refused = 0; refused < 2; ++refused) {
    try {
      Delete();
      ADD_FAILURE() << "the host was released";
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kRetry);
      EXPECT_THAT(error.message(),
                  HasSubstr("cannot be released yet: Client.InvalidHost.MinimumTime: not now"));
    }
    EXPECT_EQ(Living(), 0);
  }
  Delete();
  EXPECT_EQ(HeldHosts(), 0);
  Delete();
}

// AWS-56
TEST_F(AwsHostTest, LeakedHosts) {
  label->dedicated_host = false;
  Start();
  ec2.hosts["h-leaked"].tags = {{"nodepool_provider_name", "ec2"}, {"nodepool_node_id", "0000000777"}};
  for (int sweep = 0; sweep < 21; ++sweep) {
    time.Run(provider->CleanupLeakedResources());
    time.Advance(1min);
  }
  EXPECT_THAT(leaks, ElementsAre("1 hosts"));
  EXPECT_EQ(HeldHosts(), 0);
  EXPECT_EQ(ec2.Count("DescribeHosts"), 5) << "rarely where no label has hosts";
}

TEST(HostCodesTest, ByTheFirstPartOfTheType) {
  EXPECT_EQ(CodeOfHost("mac2-m2.metal"), "L-B90B5B66");
  EXPECT_EQ(CodeOfHost("u7in-16tb.224xlarge"), "L-75B9BECB");
  EXPECT_EQ(CodeOfHost("c5.large"), "L-81657574");
  EXPECT_EQ(CodeOfHost("nothing"), "");
}

}  // namespace
}  // namespace nodepool::drivers::aws
