// The life of nodes on EC2.
#include "driver/testing/contract.h"
#include "drivers/aws/aws_fixture_for_test.h"

namespace nodepool::drivers::aws {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class AwsMachineTest : public AwsTest {};

TEST_F(AwsMachineTest, TheContractOfAdapters) {
  Start();
  driver::testing::Subject subject{time.loop(), *adapter, ProviderName("ec2"),
                                   config->pools.at(PoolName("main")),
                                   config->pools.at(PoolName("main"))->labels.at(LabelName("small"))};
  subject.stall = [this](bool is_stalled) { ec2.is_silent = is_stalled; };
  auto results = time.Run(driver::testing::RunContract(std::move(subject)), 1000h);
  EXPECT_GE(results.size(), 12u);
  for (const auto& result : results) {
    EXPECT_EQ(result.status, driver::testing::CheckResult::Status::kPassed)
        << result.check << ": " << result.detail;
  }
  EXPECT_EQ(Living(), 0);
}

// AWS-4
TEST_F(AwsMachineTest, ANodeLivesAndDies) {
  Start();
  Launch();
  EXPECT_EQ(last.state, NodeState::kReady);
  const std::string id = ec2.instances.begin()->first;
  EXPECT_EQ(last.external_id, (boost::json::object{{"instance", id}}));
  EXPECT_EQ(last.cloud, "AWS");
  EXPECT_EQ(last.region, "us-west-2");
  EXPECT_EQ(last.az, "us-west-2a");
  EXPECT_EQ(last.public_ipv4, "192.0.2.1");
  EXPECT_EQ(last.interface_ip, "192.0.2.1");
  EXPECT_EQ(last.private_ipv4, "10.0.0.1");
  EXPECT_EQ(last.public_ipv6, std::nullopt);
  EXPECT_EQ(last.image_id, "debian");
  EXPECT_EQ(last.resources, (Resources{{"L-1216C47A", 2}, {"cores", 1}, {"instances", 1}, {"ram", 4096}}));
  EXPECT_EQ(results, std::vector<std::string>{"ready"});
  Delete();
  EXPECT_EQ(Living(), 0);
  // driver-aws.md 20
  EXPECT_EQ(ec2.Count("RunInstances"), 1);
  EXPECT_EQ(ec2.Count("TerminateInstances"), 1);
  EXPECT_LE(ec2.Count("DescribeInstances"), 8);
}

// AWS-5
TEST_F(AwsMachineTest, TheCallThatMakesAnInstance) {
  pool->places = {{"us-west-2b", "subnet-1"}};
  pool->security_group_id = "sg-1";
  ec2.images["ami-1"].devices =
      "<item><deviceName>/dev/sda1</deviceName><ebs><snapshotId>snap-1</snapshotId><volumeSize>8</volumeSize>"
      "<volumeType>gp2</volumeType><encrypted>true</encrypted></ebs></item>";
  Start();
  Launch();
  testing::Ec2Imposter::Parameters call = ec2.Last("RunInstances");
  EXPECT_THAT(call["ClientToken"], ::testing::MatchesRegex("[0-9a-f]{32}"));
  call.erase("ClientToken");
  testing::Ec2Imposter::Parameters expected = {
      {"Action", "RunInstances"},
      {"Version", "2016-11-15"},
      {"ImageId", "ami-1"},
      {"InstanceType", "t3.medium"},
      {"MinCount", "1"},
      {"MaxCount", "1"},
      {"KeyName", "zuul"},
      {"EbsOptimized", "false"},
      {"NetworkInterface.1.DeviceIndex", "0"},
      {"NetworkInterface.1.AssociatePublicIpAddress", "true"},
      {"NetworkInterface.1.SecurityGroupId.1", "sg-1"},
      {"NetworkInterface.1.SubnetId", "subnet-1"},
      {"Placement.AvailabilityZone", "us-west-2b"},
      {"BlockDeviceMapping.1.DeviceName", "/dev/sda1"},
      {"BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true"},
      {"BlockDeviceMapping.1.Ebs.SnapshotId", "snap-1"},
      {"BlockDeviceMapping.1.Ebs.VolumeSize", "8"},
      {"BlockDeviceMapping.1.Ebs.VolumeType", "gp2"},
  };
  int specification = 0;
  for (const char* resource : {"instance", "volume"}) {
    std::string prefix = "TagSpecification." + std::to_string(++specification) + ".";
    expected[prefix + "ResourceType"] = resource;
    int number = 0;
    for (const auto& [key, value] : std::map<std::string, std::string>{{"Name", "np" + last_id.str()},
                                                                       {"nodepool_node_id", last_id.str()},
                                                                       {"nodepool_pool_name", "main"},
                                                                       {"nodepool_provider_name", "ec2"}}) {
      std::string tag = prefix + "Tag." + std::to_string(++number) + ".";
      expected[tag + "Key"] = key;
      expected[tag + "Value"] = value;
    }
  }
  EXPECT_EQ(call, expected);
}

// AWS-10, AWS-11, AWS-16, AWS-20
TEST_F(AwsMachineTest, WhatALabelMayWant) {
  label->ebs_optimized = true;
  label->userdata = "#cloud-config\nwho: ÿ\n";
  label->profile_name = "profile";
  label->imdsv2 = "required";
  label->use_spot = true;
  Start();
  Launch();
  testing::Ec2Imposter::Parameters call = ec2.Last("RunInstances");
  EXPECT_EQ(call["EbsOptimized"], "true");
  EXPECT_EQ(call["UserData"], "I2Nsb3VkLWNvbmZpZwp3aG86IMO/Cg==");
  EXPECT_EQ(call["IamInstanceProfile.Name"], "profile");
  EXPECT_EQ(call["MetadataOptions.HttpTokens"], "required");
  EXPECT_EQ(call["MetadataOptions.HttpEndpoint"], "enabled");
  EXPECT_EQ(call["InstanceMarketOptions.MarketType"], "spot");
  EXPECT_EQ(call["InstanceMarketOptions.SpotOptions.SpotInstanceType"], "one-time");
  label->profile_name.reset();
  label->profile_arn = "arn:p";
  label->userdata = "";
  Launch();
  call = ec2.Last("RunInstances");
  EXPECT_EQ(call["IamInstanceProfile.Arn"], "arn:p");
  EXPECT_FALSE(call.contains("UserData"));
}

// AWS-18
TEST_F(AwsMachineTest, TheRootVolumeAsTheLabelWants) {
  ec2.images["ami-1"].devices =
      "<item><deviceName>/dev/sda1</deviceName><ebs><volumeSize>8</volumeSize><volumeType>gp3</volumeType>"
      "<iops>3000</iops><throughput>125</throughput></ebs></item>";
  const std::string ebs = "BlockDeviceMapping.1.Ebs.";
  Start();
  Launch();
  EXPECT_EQ(ec2.Last("RunInstances").at(ebs + "Throughput"), "125");
  label->volume = {.size = 40, .type = "gp2"};
  Launch();
  testing::Ec2Imposter::Parameters call = ec2.Last("RunInstances");
  EXPECT_EQ(call[ebs + "VolumeSize"], "40");
  EXPECT_EQ(call[ebs + "VolumeType"], "gp2");
  EXPECT_FALSE(call.contains(ebs + "Iops"));
  EXPECT_FALSE(call.contains(ebs + "Throughput"));
  label->volume = {.type = "io2", .iops = 9000};
  Launch();
  call = ec2.Last("RunInstances");
  EXPECT_EQ(call[ebs + "Iops"], "9000");
  EXPECT_FALSE(call.contains(ebs + "Throughput"));
}

// AWS-12, AWS-13
TEST_F(AwsMachineTest, Addresses) {
  pool->public_ipv4 = false;
  Start();
  Launch();
  EXPECT_EQ(last.public_ipv4, std::nullopt);
  EXPECT_EQ(last.interface_ip, "10.0.0.1");
  EXPECT_EQ(ec2.Last("RunInstances").at("NetworkInterface.1.AssociatePublicIpAddress"), "false");
  pool->public_ipv6 = true;
  Launch();
  EXPECT_EQ(ec2.Last("RunInstances").at("NetworkInterface.1.Ipv6AddressCount"), "1");
  EXPECT_EQ(last.public_ipv6, "2001:db8::1");
  EXPECT_EQ(last.interface_ip, "2001:db8::1");
  pool->public_ipv4 = true;
  Launch();
  EXPECT_EQ(last.interface_ip, "192.0.2.1");
  EXPECT_EQ(last.public_ipv6, "2001:db8::1");
}

// AWS-55
TEST_F(AwsMachineTest, APublicAddressThatComesLater) {
  ec2.address_after = 2s;
  Start();
  Launch();
  EXPECT_EQ(last.public_ipv4, "192.0.2.1");
  ec2.address_after = 1h;
  SteadyTime before = time.loop().SteadyNow();
  Launch();
  EXPECT_EQ(last.public_ipv4, std::nullopt) << "not waited for in vain";
  EXPECT_LE(time.loop().SteadyNow() - before, 60s);
}

// AWS-14
TEST_F(AwsMachineTest, Tags) {
  label->tags = {
      {"team", "ci"}, {"Name", "mine"}, {"nodepool_node_id", "other"}, {"long", std::string(300, 'x')}};
  label->dynamic_tags = {{"tenant", "Tenant is {request.tenant_name}"}, {"broken", "{request.nothing}"}};
  request_record.tenant_name = "tenant-1";
  Start();
  Launch();
  const auto& tags = ec2.instances.begin()->second.tags;
  EXPECT_EQ(tags.at("team"), "ci");
  EXPECT_EQ(tags.at("Name"), "np" + last_id.str());
  EXPECT_EQ(tags.at("nodepool_node_id"), last_id.str());
  EXPECT_EQ(tags.at("tenant"), "Tenant is tenant-1");
  EXPECT_EQ(tags.at("long").size(), 256u);
  EXPECT_FALSE(tags.contains("broken"));
  request_record.tenant_name.reset();
  Launch();
  EXPECT_EQ(ec2.instances.rbegin()->second.tags.at("tenant"), "Tenant is None");
}

// AWS-6, AWS-8
TEST_F(AwsMachineTest, AnImageByFilters) {
  AwsCloudImage& image = config->cloud_images["debian"];
  image.is_id = false;
  image.filters = {{"name", {"debian*"}}};
  ec2.images = {{"ami-1", {}}, {"ami-2", {.created = "2024-05-01"}}, {"ami-3", {"pending", "2024-06-01"}}};
  Start();
  Launch();
  Launch();
  EXPECT_EQ(ec2.Last("RunInstances").at("ImageId"), "ami-2");
  EXPECT_EQ(ec2.Count("DescribeImages"), 2) << "one by filters, one by id";
  // What was found is used while EC2 does not answer.
  time.Advance(6min);
  ec2.faults.push_back({.action = "DescribeImages", .times = 5, .breaks_before = true});
  Launch();
  EXPECT_EQ(ec2.Last("RunInstances").at("ImageId"), "ami-2");
  time.Advance(6min);
  ec2.images = {{"ami-3", {"pending", "2024-06-01"}}};
  config->launch_retries = 1;
  EXPECT_THAT(LaunchFails().message(), HasSubstr("No cloud-image (AMI) matches supplied image filters"));
}

// AWS-7
TEST_F(AwsMachineTest, AnImageThatDoesNotExist) {
  config->cloud_images["debian"].external_name = "ami-none";
  Start();
  EXPECT_THAT(LaunchFails().message(), HasSubstr("InvalidAMIID.NotFound"));
  EXPECT_EQ(results.size(), 3u);
  EXPECT_THAT(ec2.instances, IsEmpty());
}

// AWS-17
TEST_F(AwsMachineTest, ATypeThatDoesNotExist) {
  auto other = std::make_shared<AwsLabel>(*label);
  other->name = LabelName("huge");
  other->instance_types = {"t3.enormous"};
  pool->Offer(other);
  Start();
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("ram"), 4096);
  try {
    provider->QuotaForLabel(*other);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kInvalid);
    EXPECT_EQ(error.message(), "region us-west-2 has no instance type t3.enormous");
  }
  EXPECT_EQ(provider->LabelReady(*other), driver::Readiness::kNotReady);
  EXPECT_EQ(provider->LabelReady(*label), driver::Readiness::kReady);
}

// AWS-51
TEST_F(AwsMachineTest, DeletionsShareCalls) {
  Start();
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto end = [](driver::Provider& provider, std::string id) -> Task<> {
    Node node;
    node.external_id = ExternalId({id, ""});
    NodeId none("0000000001");
    co_await provider.DeleteResources(none, node);
  };
  for (int i = 0; i < 120; ++i) {
    std::string id = i == 60 ? "i-unknown" : AddInstance({{"nodepool_provider_name", "ec2"}});
    tasks.Spawn("delete", end(*provider, id));
  }
  SteadyTime before = time.loop().SteadyNow();
  time.Run(tasks.Join());
  EXPECT_EQ(Living(), 0);
  EXPECT_LE(ec2.Count("TerminateInstances"), 5);
  EXPECT_LE(time.loop().SteadyNow() - before, 10s);
}

TEST_F(AwsMachineTest, AnInstanceThatIsProtectedDoesNotKeepTheOthers) {
  Start();
  std::string kept = AddInstance({{"nodepool_provider_name", "ec2"}});
  std::string other = AddInstance({{"nodepool_provider_name", "ec2"}});
  FailNext("TerminateInstances", 400, "OperationNotPermitted", 1,
           "The instance '" + kept + "' may not be terminated");
  TaskGroup tasks(time.loop(), log::Logger("test"));
  std::vector<std::string> errors;
  auto end = [](driver::Provider& provider, std::string id, std::vector<std::string>& errors) -> Task<> {
    Node node;
    node.external_id = ExternalId({id, ""});
    NodeId none("0000000001");
    Outcome<> deleted = co_await Attempt(provider.DeleteResources(none, node));
    if (!deleted) errors.push_back(deleted.error().message());
  };
  tasks.Spawn("delete", end(*provider, kept, errors));
  tasks.Spawn("delete", end(*provider, other, errors));
  time.Run(tasks.Join());
  EXPECT_THAT(errors, ElementsAre(HasSubstr("may not be terminated")));
  EXPECT_EQ(Living(), 1);
}

// AWS-52
TEST_F(AwsMachineTest, ADeletionIsSeenSoon) {
  Start();
  Launch();
  SteadyTime before = time.loop().SteadyNow();
  Delete();
  EXPECT_LE(time.loop().SteadyNow() - before, ec2.shutting_down + 3s);
}

// AWS-53, AWS-54
TEST_F(AwsMachineTest, OldAndEmptyIds) {
  Start();
  std::string id = AddInstance({{"nodepool_provider_name", "ec2"}});
  last.external_id = id;
  Delete();
  EXPECT_EQ(Living(), 0);
  ec2.calls.clear();
  for (const boost::json::value& empty :
       {boost::json::value(""), boost::json::value(nullptr), boost::json::value(boost::json::object())}) {
    last.external_id = empty;
    Delete();
  }
  EXPECT_THAT(ec2.calls, IsEmpty());
}

// AWS-56
TEST_F(AwsMachineTest, LeakedInstancesAndVolumes) {
  Start();
  auto tags = [](std::string provider, std::string node) {
    return std::map<std::string, std::string>{{"nodepool_provider_name", provider},
                                              {"nodepool_node_id", node}};
  };
  std::string leaked = AddInstance(tags("ec2", "0000000777"));
  AddInstance(tags("other", "0000000777"));
  AddInstance({});
  ec2.volumes["vol-1"].tags = tags("ec2", "0000000777");
  for (int sweep = 0; sweep < 2; ++sweep) time.Run(provider->CleanupLeakedResources());
  EXPECT_THAT(leaks, ElementsAre("1 instances"));
  EXPECT_EQ(Living(), 2);
  EXPECT_TRUE(ec2.volumes.contains("vol-1")) << "this tree never had the node";
}

// AWS-72
TEST_F(AwsMachineTest, ListsInPages) {
  ec2.page_size = 5;
  Start();
  for (int i = 0; i < 12; ++i) AddInstance({});
  EXPECT_EQ(time.Run(adapter->ListInstances()).size(), 12u);
  EXPECT_EQ(ec2.Count("DescribeInstances"), 3);
}

// AWS-36
TEST_F(AwsMachineTest, ForeignInstancesOfUnknownType) {
  AddInstance({}, "m5.large");
  AddInstance({}, "x9.odd");
  Start();
  std::vector<driver::cloud::Instance> machines = time.Run(adapter->ListInstances());
  ASSERT_EQ(machines.size(), 2u);
  EXPECT_EQ(machines[0].quota.Get("ram"), 4096);
  EXPECT_EQ(machines[1].quota.Get("ram"), 0);
  EXPECT_EQ(machines[1].quota.Get("instances"), 1);
}

// AWS-73
TEST_F(AwsMachineTest, TheRateOfCalls) {
  config->rate = 2;
  Start();
  TaskGroup tasks(time.loop(), log::Logger("test"));
  for (int i = 0; i < 20; ++i) tasks.Spawn("launch", LaunchNode());
  SteadyTime before = time.loop().SteadyNow();
  time.Run(tasks.Join(), 1h);
  double seconds = std::chrono::duration<double>(time.loop().SteadyNow() - before).count();
  EXPECT_EQ(ec2.Count("RunInstances"), 20);
  EXPECT_LE(ec2.Count("DescribeInstances"), 2 * seconds + 2);
  SteadyTime last_change{};
  for (const auto& call : ec2.calls) {
    if (call.action != "RunInstances") continue;
    EXPECT_TRUE(last_change == SteadyTime() || call.when - last_change >= 500ms);
    last_change = call.when;
  }
}

// AWS-74
TEST_F(AwsMachineTest, AnIdleProviderMakesFewCalls) {
  Start();
  for (int minute = 0; minute < 10; ++minute) {
    time.Run(provider->CleanupLeakedResources());
    time.Advance(1min);
  }
  std::map<std::string, int> counts;
  for (const auto& call : ec2.calls) ++counts[call.action];
  // The sweeps of ten minutes, and one reading of the quota. What labels and images do not need is listed
  // twice in ten minutes.
  EXPECT_EQ(counts, (std::map<std::string, int>{{"DescribeHosts", 2},
                                                {"DescribeImages", 2},
                                                {"DescribeImportImageTasks", 2},
                                                {"DescribeImportSnapshotTasks", 2},
                                                {"DescribeInstances", 11},
                                                {"DescribeSnapshots", 2},
                                                {"DescribeVolumes", 10},
                                                {"ListServiceQuotas", 1}}));
}

// AWS-75
TEST_F(AwsMachineTest, SlowListsDoNotDelayLaunches) {
  Start();
  Launch();
  ec2.latency = 5s;
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto list = [](AwsAdapter& adapter) -> Task<> { co_await adapter.ListInstances(); };
  for (int i = 0; i < 5; ++i) tasks.Spawn("list", list(*adapter));
  time.Advance(1s);
  tasks.Spawn("launch", LaunchNode());
  time.Advance(1s);
  EXPECT_EQ(ec2.Count("RunInstances"), 2);
  time.Run(tasks.Join(), 1h);
}

}  // namespace
}  // namespace nodepool::drivers::aws
