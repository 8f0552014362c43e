#include "drivers/aws/compute/quota.h"

#include "driver/testing/contract.h"
#include "drivers/aws/aws_fixture_for_test.h"
#include "drivers/aws/compute/instance.h"

namespace nodepool::drivers::aws {

// Limits of the account and of the machines in it (driver-aws.md 13).

namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr const char* kStandardCode = "L-1216C47A";
constexpr const char* kSpotCode = "L-34B43A08";

// AWS-30, AWS-31, AWS-32
TEST(QuotaCodesTest, FamiliesAndMarkets) {
  for (const char* type :
       {"t3.medium", "m5.large", "c7gn.4xlarge", "im4gn.large", "is4gen.medium", "z1d.large"}) {
    EXPECT_EQ(CodeOfType(type, false), kStandardCode) << type;
    EXPECT_EQ(CodeOfType(type, true), kSpotCode) << type;
  }
  EXPECT_EQ(CodeOfType("g5.xlarge", false), "L-DB2E81BA");
  EXPECT_EQ(CodeOfType("gr6.4xlarge", false), "L-DB2E81BA");
  EXPECT_EQ(CodeOfType("u-6tb1.metal", false), "L-43DA4232");
  EXPECT_EQ(CodeOfType("u7in-16tb.224xlarge", false), "L-43DA4232");
  EXPECT_EQ(CodeOfType("u-6tb1.metal", true), "");
  EXPECT_EQ(CodeOfType("trn1.2xlarge", true), "L-6B0D517C");
  EXPECT_EQ(CodeOfType("inf2.xlarge", false), "L-1945791B");
  EXPECT_EQ(CodeOfType("p4d.24xlarge", true), "L-7212CCBC");
  EXPECT_EQ(CodeOfType("x2gd.large", false), "L-7295265B");
  EXPECT_EQ(CodeOfType("dl1.24xlarge", false), "L-6E869C2A");
  EXPECT_EQ(CodeOfType("mac2.metal", false), "");
  EXPECT_EQ(CodeOfType("", false), "");
  EXPECT_EQ(CodesOfVolume("io2").storage, "L-09BD8365");
  EXPECT_EQ(CodesOfVolume("io2").iops, "L-8D977E7E");
  EXPECT_EQ(CodesOfVolume("gp3").storage, "L-7A658B76");
  EXPECT_EQ(CodesOfVolume("gp3").iops, "");
  EXPECT_EQ(CodesOfVolume("floppy").storage, "");
}

class AwsQuotaTest : public AwsTest {
 protected:
  double Limit(const char* code) { return provider->AvailableQuota().Get(code); }
  // A label beside the usual one.
  AwsLabel& AddLabel(const char* name, const char* type) {
    auto made = std::make_shared<AwsLabel>(*label);
    made->name = LabelName(name);
    made->instance_types = {type};
    pool->Offer(made);
    return *made;
  }
};

// AWS-30, AWS-31
// A refusal concerns what counts under the same quota, and nothing else.
TEST(QuotaCodesTest, RefusalsNameTheirQuota) {
  AwsLabel label;
  label.volume.type = "io1";
  EXPECT_EQ(QuotaOf("VcpuLimitExceeded", label, "g5.xlarge"), "L-DB2E81BA");
  EXPECT_EQ(QuotaOf("VcpuLimitExceeded", label, "m5.large"), "L-1216C47A");
  EXPECT_EQ(QuotaOf("MaxSpotInstanceCountExceeded", label, "m5.large"), "L-34B43A08");
  EXPECT_EQ(QuotaOf("HostLimitExceeded", label, "m5.large"), CodeOfHost("m5.large"));
  EXPECT_EQ(QuotaOf("VolumeLimitExceeded", label, "m5.large"), "L-FD252861");
  EXPECT_EQ(QuotaOf("MaxIOPSLimitExceeded", label, "m5.large"), "L-B3A130E6");
  EXPECT_EQ(QuotaOf("AddressLimitExceeded", label, "m5.large"), "");
  label.use_spot = true;
  EXPECT_EQ(QuotaOf("VcpuLimitExceeded", label, "m5.large"), "L-34B43A08");
}

TEST_F(AwsQuotaTest, LimitsOfTheFamiliesThatLabelsUse) {
  ec2.quotas["ec2"] = {{kStandardCode, 6}, {kSpotCode, 8}, {"L-DB2E81BA", 4}, {"L-7295265B", 5}};
  ec2.types["g5.xlarge"] = 4;
  AddLabel("gpu", "g5.xlarge");
  AddLabel("spot", "t3.medium").use_spot = true;
  Start();
  EXPECT_EQ(Limit(kStandardCode), 6);
  EXPECT_EQ(Limit(kSpotCode), 8);
  EXPECT_EQ(Limit("L-DB2E81BA"), 4);
  EXPECT_EQ(Limit("L-7295265B"), driver::kUnlimited) << "no label uses it";
  EXPECT_EQ(Limit("cores"), driver::kUnlimited);
  auto need = [this](const char* name) {
    return provider->QuotaForLabel(*pool->labels.at(LabelName(name))).resources();
  };
  EXPECT_EQ(need("gpu"), (Resources{{"L-DB2E81BA", 4}, {"cores", 2}, {"instances", 1}, {"ram", 4096}}));
  EXPECT_EQ(need("spot"), (Resources{{kSpotCode, 2}, {"cores", 1}, {"instances", 1}, {"ram", 4096}}));
}

// AWS-32
TEST_F(AwsQuotaTest, ATypeWithoutAKnownQuotaLaunches) {
  ec2.types["mac2.metal"] = 8;
  label->instance_types = {"mac2.metal"};
  Start();
  Launch();
  EXPECT_EQ(last.resources, (Resources{{"cores", 4}, {"instances", 1}, {"ram", 4096}}));
  EXPECT_EQ(ec2.Count("ListServiceQuotas"), 0);
}

// A reload may put a label where another one was.
TEST_F(AwsQuotaTest, NeedsBelongToLabelsNotToTheirAddresses) {
  ec2.types["g5.xlarge"] = 4;
  AwsLabel& gpu = AddLabel("gpu", "g5.xlarge");
  Start();
  Resources need = provider->QuotaForLabel(*label).resources();
  Resources need_of_gpu = provider->QuotaForLabel(gpu).resources();
  EXPECT_NE(need, need_of_gpu);
  std::swap(*label, gpu);
  EXPECT_EQ(provider->QuotaForLabel(*label).resources(), need_of_gpu);
  EXPECT_EQ(provider->QuotaForLabel(gpu).resources(), need);
}

// AWS-34
TEST_F(AwsQuotaTest, VolumesCountInGigabytesAndOperations) {
  ec2.quotas["ebs"] = {{"L-D18FCD1D", 1}, {"L-FD252861", 2}, {"L-B3A130E6", 9000}};
  label->volume = {.size = 400, .type = "gp2"};
  AddLabel("fast", "t3.medium").volume = {.size = 100, .type = "io1", .iops = 5000};
  Start();
  EXPECT_EQ(Limit("L-D18FCD1D"), 1000);
  EXPECT_EQ(Limit("L-FD252861"), 2000);
  EXPECT_EQ(Limit("L-B3A130E6"), 9000);
  Resources need = provider->QuotaForLabel(*pool->labels.at(LabelName("fast"))).resources();
  EXPECT_EQ(need.at("L-FD252861"), 100);
  EXPECT_EQ(need.at("L-B3A130E6"), 5000);
  Launch();
  EXPECT_EQ(last.resources->at("L-D18FCD1D"), 400);
}

// AWS-36
TEST_F(AwsQuotaTest, ForeignInstancesAndTheirVolumesReduceTheLimits) {
  ec2.quotas["ec2"] = {{kStandardCode, 10}};
  ec2.quotas["ebs"] = {{"L-D18FCD1D", 1}};
  label->volume.type = "gp2";
  std::string foreign = AddInstance({}, "m5.large");
  std::string spot = AddInstance({}, "m5.large");
  ec2.instances[spot].is_spot = true;
  std::string ended = AddInstance({}, "m5.large");
  ec2.instances[ended].ending = ec2.instances[ended].gone = SteadyTime();
  ec2.volumes["vol-1"] = {{}, foreign, "gp2", 300, 0};
  ec2.volumes["vol-2"] = {{}, "", "gp2", 500, 0};
  Start();
  EXPECT_EQ(Limit(kStandardCode), 8);
  EXPECT_EQ(Limit("L-D18FCD1D"), 700) << "volumes of no instance do not count";
}

// AWS-37
TEST_F(AwsQuotaTest, WithoutServiceQuotasLaunchesContinue) {
  FailNext("ListServiceQuotas", 400, "AccessDeniedException", 1000, "not you");
  Start();
  EXPECT_EQ(faults.back(), "");
  EXPECT_EQ(Limit(kStandardCode), driver::kUnlimited);
  Launch();
  ec2.faults.clear();
  provider->InvalidateQuota();
  time.Advance(10s);
  EXPECT_EQ(Limit(kStandardCode), 1000) << "read as soon as it may be";
  FailNext("ListServiceQuotas", 500, "InternalFailure", 1000);
  time.Advance(1h);
  EXPECT_EQ(Limit(kStandardCode), 1000) << "the last limit counts";
}

// AWS-38
TEST_F(AwsQuotaTest, QuotasInPages) {
  ec2.page_size = 2;
  for (int i = 0; i < 5; ++i) ec2.quotas["ec2"]["L-0000000" + std::to_string(i)] = 1;
  Start();
  EXPECT_EQ(Limit(kStandardCode), 1000);
  time.Advance(6min);
  EXPECT_EQ(ec2.Count("ListServiceQuotas"), 3);
}

TEST_F(AwsQuotaTest, QuotasAreReadAtMostEveryFiveMinutes) {
  Start();
  for (int i = 0; i < 20; ++i) {
    provider->InvalidateQuota();
    time.Advance(10s);
  }
  EXPECT_EQ(ec2.Count("ListServiceQuotas"), 0);
  EXPECT_GE(ec2.Count("DescribeInstances"), 10);
}

TEST_F(AwsQuotaTest, ACodeThatAwsDoesNotReportIsNoLimit) {
  ec2.quotas["ec2"] = {{"L-OTHER", 1}};
  Start();
  EXPECT_EQ(Limit(kStandardCode), driver::kUnlimited);
}

TEST(JsonFaultTest, CodesHaveSeveralForms) {
  for (const char* type : {"AccessDeniedException", "com.amazon.x#AccessDeniedException",
                           "com.amazon.x#AccessDeniedException:http://internal/"}) {
    auto fault = ReadJsonFault(400, std::string(R"({"__type": ")") + type + R"(", "Message": "no"})");
    EXPECT_EQ(fault.code, "AccessDeniedException") << type;
    EXPECT_EQ(fault.verdict, Verdict::kInvalid) << type;
    EXPECT_EQ(fault.text, "AccessDeniedException: no; give the key's user or role this right") << type;
  }
  EXPECT_EQ(ReadJsonFault(400, R"({"__type": "TooManyRequestsException", "message": "m"})").verdict,
            Verdict::kRateLimited);
  EXPECT_EQ(ReadJsonFault(503, "down").verdict, Verdict::kRetry);
  EXPECT_EQ(ReadJsonFault(400, "[]").verdict, Verdict::kInvalid);
  EXPECT_EQ(ReadJsonFault(400, R"({"__type": "UnrecognizedClientException"})").refuses_signature, true);
}

// Nodes on dedicated hosts (driver-aws.md 10).

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
