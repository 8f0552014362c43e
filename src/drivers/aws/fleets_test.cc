#include "driver/testing/contract.h"
#include "drivers/aws/aws_fixture_for_test.h"
#include "drivers/aws/compute/instance_request.h"

namespace nodepool::drivers::aws {

// Fleets, launch templates, and labels with several kinds of machine or places (driver-aws.md 9, 21.5).

namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kVcpus = "L-1216C47A";

class AwsFleetTest : public AwsTest {
 protected:
  void SetUp() override {
    AwsTest::SetUp();
    ec2.types["m5.xlarge"] = 4;
    label->instance_types = {"m5.large", "m5.xlarge"};
    label->fleet_strategy = "lowest-price";
    pool->places = {{std::nullopt, "subnet-1"}};
    pool->security_group_id = "sg-1";
  }
  void StartAndSettle() {
    Start();
    time.Advance(1s);
  }
  std::vector<std::string> TemplateNames() const {
    std::vector<std::string> names;
    for (const auto& [name, one] : ec2.templates) names.push_back(name);
    return names;
  }
};

TEST_F(AwsFleetTest, TheContractOfAdapters) {
  StartAndSettle();
  driver::testing::Subject subject{time.loop(), *adapter, ProviderName("ec2"),
                                   config->pools.at(PoolName("main")),
                                   config->pools.at(PoolName("main"))->labels.at(LabelName("small"))};
  subject.stall = [this](bool is_stalled) { ec2.is_silent = is_stalled; };
  for (const auto& result : time.Run(driver::testing::RunContract(std::move(subject)), 1000h)) {
    EXPECT_EQ(result.status, driver::testing::CheckResult::Status::kPassed)
        << result.check << ": " << result.detail;
  }
  EXPECT_EQ(Living(), 0);
}

// AWS-27
TEST_F(AwsFleetTest, TheCallAndTheRecord) {
  label->fleet_strategy = "prioritized";
  label->tags = {{"team", "ci"}};
  ec2.refused_candidates["m5.large"] = "InsufficientInstanceCapacity";
  StartAndSettle();
  Launch();
  testing::Ec2Imposter::Parameters call = ec2.Last("CreateFleet");
  const std::string config_1 = "LaunchTemplateConfigs.1.";
  EXPECT_EQ(call["Type"], "instant");
  EXPECT_EQ(call[config_1 + "LaunchTemplateSpecification.LaunchTemplateName"], ec2.templates.begin()->first);
  EXPECT_EQ(call[config_1 + "LaunchTemplateSpecification.Version"], "$Latest");
  EXPECT_EQ(call[config_1 + "Overrides.1.ImageId"], "ami-1");
  EXPECT_EQ(call[config_1 + "Overrides.1.InstanceType"], "m5.large");
  EXPECT_EQ(call[config_1 + "Overrides.1.SubnetId"], "subnet-1");
  EXPECT_EQ(call[config_1 + "Overrides.1.Priority"], "1");
  EXPECT_EQ(call[config_1 + "Overrides.2.InstanceType"], "m5.xlarge");
  EXPECT_EQ(call[config_1 + "Overrides.2.Priority"], "2");
  EXPECT_FALSE(call.contains(config_1 + "Overrides.1.BlockDeviceMapping.1.DeviceName"));
  EXPECT_EQ(call["TargetCapacitySpecification.TotalTargetCapacity"], "1");
  EXPECT_EQ(call["TargetCapacitySpecification.DefaultTargetCapacityType"], "on-demand");
  EXPECT_EQ(call["OnDemandOptions.AllocationStrategy"], "prioritized");
  EXPECT_EQ(call["TagSpecification.1.ResourceType"], "instance");
  EXPECT_EQ(call["TagSpecification.2.ResourceType"], "volume");
  EXPECT_FALSE(call["ClientToken"].empty());
  const auto& [id, instance] = *ec2.instances.begin();
  EXPECT_EQ(instance.tags.at("team"), "ci");
  EXPECT_EQ(instance.tags.at("nodepool_node_id"), last_id.str());
  EXPECT_EQ(last.external_id, (boost::json::object{{"instance", id}}));
  EXPECT_EQ(last.resources, (Resources{{kVcpus, 4}, {"cores", 2}, {"instances", 1}, {"ram", 4096}}));
  EXPECT_THAT(results, ElementsAre("ready"));
}

// AWS-27
TEST_F(AwsFleetTest, OnTheSpotMarket) {
  label->use_spot = true;
  label->fleet_strategy = "capacity-optimized";
  StartAndSettle();
  Launch();
  testing::Ec2Imposter::Parameters call = ec2.Last("CreateFleet");
  EXPECT_EQ(call["TargetCapacitySpecification.DefaultTargetCapacityType"], "spot");
  EXPECT_EQ(call["SpotOptions.AllocationStrategy"], "capacity-optimized");
  EXPECT_FALSE(call.contains("LaunchTemplateConfigs.1.Overrides.1.Priority"));
  EXPECT_EQ(last.resources->at("L-34B43A08"), 2);
}

// AWS-27: the template's root device is not that of the image.
TEST_F(AwsFleetTest, AnotherRootDevice) {
  ec2.images["ami-1"].root = "/dev/xvda";
  ec2.images["ami-1"].devices =
      "<item><deviceName>/dev/xvda</deviceName><ebs><volumeSize>8</volumeSize></ebs></item>";
  label->volume.size = 40;
  StartAndSettle();
  Launch();
  testing::Ec2Imposter::Parameters call = ec2.Last("CreateFleet");
  const std::string device = "LaunchTemplateConfigs.1.Overrides.2.BlockDeviceMapping.1.";
  EXPECT_EQ(call[device + "DeviceName"], "/dev/xvda");
  EXPECT_EQ(call[device + "Ebs.VolumeSize"], "40");
}

// AWS-35: before the launch the smallest type counts, and only under what all types use.
TEST_F(AwsFleetTest, WhatANodeUsesAtLeast) {
  StartAndSettle();
  auto need = [this] { return provider->QuotaForLabel(*label).resources(); };
  EXPECT_EQ(need(), (Resources{{kVcpus, 2}, {"cores", 1}, {"instances", 1}, {"ram", 4096}}));
  label->instance_types.push_back("g5.xlarge");
  ec2.types["g5.xlarge"] = 4;
  time.Run(provider->Stop());
  StartAndSettle();
  EXPECT_EQ(need(), (Resources{{"cores", 1}, {"instances", 1}, {"ram", 4096}}));
  EXPECT_EQ(provider->AvailableQuota().Get(kVcpus), 1000);
}

// AWS-28. Lack of capacity is handed to the request, which waits.
TEST_F(AwsFleetTest, TheErrorsOfAFleetCountAsWhatTheyAre) {
  config->launch_retries = 1;
  StartAndSettle();
  auto launch = [this](const char* large, const char* xlarge) {
    ec2.refused_candidates = {{"m5.large", large}, {"m5.xlarge", xlarge}};
    results.clear();
    Verdict verdict = LaunchFails().verdict();
    return results.back() + " " + std::string(ToString(verdict));
  };
  EXPECT_EQ(launch("InsufficientInstanceCapacity", "UnfulfillableCapacity"), "error.capacity quota");
  EXPECT_EQ(launch("InsufficientInstanceCapacity", "Unsupported"), "error.capacity quota");
  EXPECT_EQ(launch("InsufficientInstanceCapacity", "VcpuLimitExceeded"), "error.quota quota");
  EXPECT_EQ(launch("InvalidParameterValue", "InvalidSubnetID.NotFound"), "error.unknown invalid");
  EXPECT_EQ(launch("SomethingNew", "InsufficientInstanceCapacity"), "error.unknown fail");
  EXPECT_EQ(Living(), 0);
}

// AWS-42
TEST_F(AwsFleetTest, AFleetThatEc2ThrottlesItselfCostsNoAttempt) {
  config->launch_retries = 1;
  StartAndSettle();
  ec2.refused_candidates = {{"m5.large", "InsufficientInstanceCapacity"},
                            {"m5.xlarge", "RequestLimitExceeded"}};
  TaskGroup tasks(time.loop(), log::Logger("test"));
  tasks.Spawn("launch", LaunchNode());
  time.Advance(1min);
  EXPECT_GE(ec2.Count("CreateFleet"), 5);
  ec2.refused_candidates.clear();
  time.Run(tasks.Join());
  EXPECT_THAT(results, ElementsAre("ready"));
}

// AWS-29
TEST_F(AwsFleetTest, AnInstanceThatEc2DoesNotListYet) {
  config->launch_retries = 1;
  ec2.visible_after = 5s;
  StartAndSettle();
  Launch();
  EXPECT_EQ(Living(), 1);
  Delete();
  EXPECT_EQ(Living(), 0);
}

// AWS-25
TEST_F(AwsFleetTest, TemplatesAreMadeKeptAndRemoved) {
  ec2.templates["nodepool-launch-template-foreign"].tags = {{"nodepool_provider_name", "other"}};
  ec2.templates["nodepool-launch-template-old"].tags = {{"nodepool_provider_name", "ec2"}};
  auto second = std::make_shared<AwsLabel>(*label);
  second->name = LabelName("same");
  second->instance_types = {"t3.medium"};
  pool->Offer(second);
  auto third = std::make_shared<AwsLabel>(*label);
  third->name = LabelName("larger");
  third->volume.size = 80;
  pool->Offer(third);
  StartAndSettle();
  EXPECT_EQ(ec2.templates_made, 2) << "labels with the same data share one";
  const std::vector<std::string> made = TemplateNames();
  EXPECT_EQ(made.size(), 3u);
  EXPECT_TRUE(ec2.templates.contains("nodepool-launch-template-foreign"));
  EXPECT_FALSE(ec2.templates.contains("nodepool-launch-template-old"));

  time.Run(provider->Stop());
  StartAndSettle();
  EXPECT_EQ(ec2.templates_made, 2);
  EXPECT_EQ(TemplateNames(), made);

  time.Run(provider->Stop());
  for (auto* one : {label, second.get(), third.get()}) one->fleet_strategy.reset();
  StartAndSettle();
  EXPECT_THAT(TemplateNames(), ElementsAre("nodepool-launch-template-foreign")) << "no label needs one";
}

// AWS-25
TEST_F(AwsFleetTest, LabelsWaitUntilTheirTemplatesAreMade) {
  FailNext("CreateLaunchTemplate", 403, "UnauthorizedOperation", 3, "not you");
  log::Capture log;
  Start();
  try {
    provider->QuotaForLabel(*label);
    ADD_FAILURE() << "there are no templates";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kRetry);
  }
  time.Advance(5min);
  EXPECT_EQ(log.Count("labels with fleet wait: CreateLaunchTemplate"), 1) << "once for each cause";
  EXPECT_GT(capacity_changes, 0);
  Launch();
  EXPECT_EQ(Living(), 1);
}

TEST_F(AwsFleetTest, ATemplateThatSomebodyRemovedIsMadeAgain) {
  StartAndSettle();
  ec2.templates.clear();
  Launch();
  EXPECT_EQ(Living(), 1);
  EXPECT_EQ(ec2.templates.size(), 1u);
}

TEST_F(AwsFleetTest, WithoutFleetsARefusalIsNotReported) {
  label->fleet_strategy.reset();
  FailNext("DescribeLaunchTemplates", 403, "UnauthorizedOperation", 100);
  log::Capture log;
  StartAndSettle();
  time.Advance(10min);
  EXPECT_TRUE(std::ranges::none_of(log.records(), [](const log::Record& record) {
    return record.level >= log::Level::kWarning && record.text.find("emplate") != std::string::npos;
  }));
  EXPECT_EQ(ec2.faults.front().times, 99) << "asked once, for templates of labels that had fleets";
}

// AWS-26: the example of driver-aws.md 9.1.
TEST(LaunchTemplateTest, TheNameIsThatOfThePythonImplementation) {
  AwsLabel label;
  AwsPool pool;
  label.key_name = "zuul";
  label.volume.size = 20;
  pool.security_group_id = "sg-0123";
  EXPECT_EQ(TemplateOf(label, pool, "ec2").name,
            "nodepool-launch-template-5438e90616e6b0f357fd77ccce83a691573263e573f7fecf25af79639c207576");
}

// AWS-26: computed with json.dumps(sort_keys=True) and hashlib of Python.
TEST(LaunchTemplateTest, TheNameOfATemplateWithEverything) {
  AwsLabel label;
  AwsPool pool;
  label.volume = {.size = 40, .type = "gp3", .iops = 4000, .throughput = 250};
  label.imdsv2 = "required";
  label.userdata = "#cloud-config\nmotd: gr\xc3\xbc\xc3\x9f\x65\n";
  EXPECT_EQ(TemplateOf(label, pool, "n\xc3\xb6rd \xf0\x9f\x98\x80 \"x\"\x7f").name,
            "nodepool-launch-template-07e35846a5c1d5b0672a05a7966d4f96d23efbca6c0d2f5204c14b0c15f4e421");
}

TEST(LaunchTemplateTest, TheCallLeavesOutWhatIsNotSet) {
  AwsLabel label;
  AwsPool pool;
  label.volume.size = 40;
  LaunchTemplate made = TemplateOf(label, pool, "ec2");
  std::map<std::string, std::string> sent;
  const Query query = CreateLaunchTemplate(made, "ec2");
  for (const auto& [name, value] : query.parameters()) sent[name] = value;
  EXPECT_EQ(sent, (std::map<std::string, std::string>{
                      {"LaunchTemplateName", made.name},
                      {"LaunchTemplateData.BlockDeviceMapping.1.DeviceName", "/dev/sda1"},
                      {"LaunchTemplateData.BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true"},
                      {"LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeSize", "40"},
                      {"TagSpecification.1.ResourceType", "launch-template"},
                      {"TagSpecification.1.Tag.1.Key", "nodepool_managed"},
                      {"TagSpecification.1.Tag.1.Value", "True"},
                      {"TagSpecification.1.Tag.2.Key", "nodepool_provider_name"},
                      {"TagSpecification.1.Tag.2.Value", "ec2"}}));
}

// --- Several candidates without a fleet ------------------------------------------
class AwsCandidatesTest : public AwsTest {
 protected:
  void SetUp() override {
    AwsTest::SetUp();
    ec2.types["m5.xlarge"] = 4;
    label->instance_types = {"m5.large", "m5.xlarge"};
    pool->places = {{std::nullopt, "subnet-1"}, {std::nullopt, "subnet-2"}};
    config->launch_retries = 1;
  }
  // "type subnet" of each call that makes an instance.
  std::vector<std::string> Tried() const {
    std::vector<std::string> tried;
    for (const auto& call : ec2.calls) {
      if (call.action != "RunInstances") continue;
      tried.push_back(call.parameters.at("InstanceType") + " " +
                      call.parameters.at("NetworkInterface.1.SubnetId"));
    }
    return tried;
  }
};

TEST_F(AwsCandidatesTest, TheNextPlaceThenTheNextTypeAndNoAttemptIsLost) {
  Start();
  ec2.refused_candidates["m5.large"] = "InsufficientInstanceCapacity";
  log::Capture log;
  Launch();
  EXPECT_THAT(Tried(), ElementsAre("m5.large subnet-1", "m5.large subnet-2", "m5.xlarge subnet-1"));
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_EQ(last.resources->at(kVcpus), 4);
  EXPECT_EQ(
      log.Count(
          "The machine is m5.xlarge in subnet-1; no capacity for m5.large in subnet-1, m5.large in subnet-2"),
      1);
  EXPECT_THAT(*last.comment,
              ::testing::MatchesRegex("Launched as m5.xlarge in subnet-1; no capacity for m5.large in "
                                      "subnet-1 until ..:.. UTC, m5.large in subnet-2 until ..:.. UTC"));
  ec2.calls.clear();
  Launch();
  EXPECT_THAT(Tried(), ElementsAre("m5.xlarge subnet-1")) << "shortages are remembered";
  time.Advance(5min);
  ec2.refused_candidates.clear();
  ec2.calls.clear();
  Launch();
  EXPECT_THAT(Tried(), ElementsAre("m5.large subnet-1"));
}

// AWS-81
TEST_F(AwsCandidatesTest, TheCommentHasTheChoiceAndThePrice) {
  config->prices["m5.large"] = {.on_demand = 0.096, .spot = 0.04};
  Start();
  Launch();
  EXPECT_EQ(last.comment, "Launched as m5.large in subnet-1, the first choice; 0.096 per hour");
  EXPECT_EQ(last.hourly_price, 0.096);
  EXPECT_THAT(machine_types, ElementsAre("m5.large"));
  label->use_spot = true;
  Launch();
  EXPECT_EQ(last.comment, "Launched as m5.large spot in subnet-1, the first choice; 0.04 per hour");
  label->use_spot = false;
  label->instance_types = {"m5.xlarge"};
  pool->places = {{std::nullopt, "subnet-1"}};
  Launch();
  EXPECT_EQ(last.comment, std::nullopt) << "no choice, no price";
  EXPECT_EQ(last.hourly_price, std::nullopt);
}

TEST_F(AwsCandidatesTest, WhenAllWereTriedTheAttemptFails) {
  Start();
  ec2.refused_candidates = {{"m5.large", "InsufficientInstanceCapacity"},
                            {"m5.xlarge", "InsufficientInstanceCapacity"}};
  LaunchFails();
  EXPECT_EQ(Tried().size(), 4u);
  EXPECT_THAT(results, ElementsAre("error.capacity"));
}

TEST_F(AwsCandidatesTest, ASubnetWithoutAddressesAndATypeThatAZoneLacks) {
  Start();
  ec2.refused_candidates = {{"subnet-1", "InsufficientFreeAddressesInSubnet"}, {"m5.large", "Unsupported"}};
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_EQ(Tried().back(), "m5.xlarge subnet-2");
}

TEST_F(AwsCandidatesTest, AnInstanceThatDiesForLackOfCapacityIsDeletedBeforeTheNextIsMade) {
  Start();
  ec2.next_dies_of = "Server.InsufficientInstanceCapacity";
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_EQ(Living(), 1);
  EXPECT_EQ(Tried().back(), "m5.large subnet-2");
}

TEST_F(AwsCandidatesTest, OtherErrorsDoNotMoveOn) {
  Start();
  FailNext("RunInstances", 400, "VcpuLimitExceeded");
  EXPECT_EQ(LaunchFails().verdict(), Verdict::kQuota);
  EXPECT_EQ(Tried().size(), 1u);
}

TEST_F(AwsCandidatesTest, DedicatedHostsInSeveralZones) {
  label->instance_types = {"m5.large"};
  label->dedicated_host = true;
  ec2.quotas["ec2"]["L-8B7BF662"] = 4;
  pool->places = {{"us-west-2a", std::nullopt}, {"us-west-2b", std::nullopt}};
  Start();
  ec2.refused_candidates["us-west-2a"] = "InsufficientInstanceCapacity";
  Launch();
  EXPECT_EQ(ec2.Last("AllocateHosts").at("AvailabilityZone"), "us-west-2b");
  EXPECT_EQ(ec2.Last("RunInstances").at("Placement.AvailabilityZone"), "us-west-2b");
  Delete();
  EXPECT_TRUE(std::ranges::all_of(ec2.hosts, [](const auto& host) { return host.second.is_released; }));
}

// Spot instances that AWS takes away, and what is read for the diagnosis of failed launches.

using namespace std::chrono_literals;

class AwsSpotTest : public AwsTest {
 protected:
  void SetUp() override {
    AwsTest::SetUp();
    label->use_spot = true;
  }
  std::vector<std::string> Announced() {
    std::vector<boost::json::value> ids;
    for (const auto& [id, instance] : ec2.instances) ids.push_back(ExternalId({id, ""}));
    std::vector<std::string> announced;
    for (const auto& end : time.Run(adapter->AnnouncedEnds(std::move(ids)))) {
      announced.push_back(ReadExternalId(end.external_id).instance + " " + end.reason);
    }
    return announced;
  }
};

// AWS-50, TAKE-5
TEST_F(AwsSpotTest, AMarkedInstanceIsAnnounced) {
  Start();
  Launch();
  const std::string id = ec2.instances.begin()->first;
  EXPECT_EQ(Announced(), std::vector<std::string>());
  ec2.spot_statuses[id] = "marked-for-termination";
  ec2.spot_statuses["i-foreign"] = "marked-for-termination";
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(Announced(), std::vector<std::string>{id + " marked-for-termination: so"});
  EXPECT_EQ(time.Run(store.nodes.Read(last_id))->record.state, NodeState::kDeleting) << "at the first check";
}

// AWS-50
TEST_F(AwsSpotTest, AnInterruptedInstanceIsAnnounced) {
  Start();
  Launch();
  auto& [id, instance] = *ec2.instances.begin();
  time.Advance(10s);
  instance.reason = "Server.SpotInstanceTermination";
  instance.ending = time.loop().SteadyNow();
  EXPECT_EQ(Announced(),
            std::vector<std::string>{id + " it is shutting-down, Server.SpotInstanceTermination"});
}

// AWS-74
TEST_F(AwsSpotTest, WithoutSpotInstancesNobodyAsks) {
  label->use_spot = false;
  Start();
  Launch();
  EXPECT_EQ(Announced(), std::vector<std::string>());
  EXPECT_EQ(ec2.Count("DescribeSpotInstanceRequests"), 0);
}

TEST_F(AwsSpotTest, TheConsoleOfAnInstance) {
  Start();
  Launch();
  auto console = [this] { return time.Run(adapter->ConsoleLog(*label, last.external_id)); };
  EXPECT_EQ(console(), std::nullopt);
  ec2.console = "booting\nlogin:";
  EXPECT_EQ(console(), "booting\nlogin:");
  EXPECT_EQ(ec2.Last("GetConsoleOutput").at("Latest"), "true");
  ec2.shows_latest_console = false;
  EXPECT_EQ(console(), "booting\nlogin:");
  EXPECT_FALSE(ec2.Last("GetConsoleOutput").contains("Latest"));
  ec2.console = std::string(20'000, 'x') + "\n" + std::string(10'000, 'y');
  EXPECT_EQ(console(), std::string(10'000, 'y')) << "the end of it";
  EXPECT_EQ(time.Run(adapter->ConsoleLog(*label, boost::json::value(nullptr))), std::nullopt);
}

}  // namespace

}  // namespace nodepool::drivers::aws
