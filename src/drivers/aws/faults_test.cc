// What EC2 refuses, forgets, loses and takes away.
#include "base/error.h"
#include "base/log/logging.h"
#include "driver/driver.h"
#include "drivers/aws/aws_fixture_for_test.h"

namespace nodepool::drivers::aws {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class AwsFaultsTest : public AwsTest {
 protected:
  Task<> TryToLaunch() { co_await Attempt(LaunchNode()); }
};

// AWS-41
TEST_F(AwsFaultsTest, NoCapacity) {
  Start();
  FailNext("RunInstances", 500, "InsufficientInstanceCapacity", 100);
  LaunchFails();
  EXPECT_THAT(results, ElementsAre("error.capacity", "error.capacity", "error.capacity"));
  EXPECT_EQ(ec2.Count("RunInstances"), 3)
      << "once for each attempt, though the status is that of a passing fault";
}

// AWS-39, AWS-40
TEST_F(AwsFaultsTest, QuotasThatAreUsedUp) {
  Start();
  for (const char* code : {"InstanceLimitExceeded", "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded",
                           "VolumeLimitExceeded", "InsufficientFreeAddressesInSubnet"}) {
    results.clear();
    FailNext("RunInstances", 400, code);
    EXPECT_EQ(LaunchFails().verdict(), Verdict::kQuota) << code;
    EXPECT_THAT(results, ElementsAre("error.quota")) << code;
  }
}

// AWS-39. Labels of other families and markets go on.
TEST_F(AwsFaultsTest, ARefusalForQuotaSaysWhichOne) {
  Start();
  FailNext("RunInstances", 400, "VcpuLimitExceeded");
  try {
    Launch();
    ADD_FAILURE();
  } catch (const driver::Refusal& refusal) {
    EXPECT_THAT(refusal.resources(), ElementsAre("L-1216C47A"));
    EXPECT_THAT(refusal.message(), ::testing::StartsWith("quota L-1216C47A: RunInstances"));
  }
}

// AWS-42
TEST_F(AwsFaultsTest, ThrottlingCostsNoAttempt) {
  Start();
  FailNext("RunInstances", 503, "RequestLimitExceeded", 6);
  FailNext("DescribeInstances", 503, "RequestLimitExceeded", 3);
  Launch();
  EXPECT_EQ(results, std::vector<std::string>{"ready"});
  EXPECT_EQ(ec2.instances.size(), 1u);
  // The calls become rarer.
  std::vector<SteadyTime> times;
  for (const auto& call : ec2.calls) {
    if (call.action == "RunInstances") times.push_back(call.when);
  }
  ASSERT_EQ(times.size(), 7u);
  EXPECT_GE(times[6] - times[5], 4 * (times[1] - times[0]));
  results.clear();
  Launch();
  EXPECT_EQ(results, std::vector<std::string>{"ready"});
}

// AWS-43, AWS-44
TEST_F(AwsFaultsTest, PassingFaultsHaveNoEffect) {
  Start();
  for (const char* action : {"RunInstances", "DescribeInstances", "DescribeImages"}) {
    FailNext(action, 500, "InternalError");
    FailNext(action, 503, "Unavailable");
  }
  ec2.faults.push_back({.action = "RunInstances", .breaks_after = true});
  Launch();
  EXPECT_EQ(ec2.instances.size(), 1u) << "the answer was lost after the instance was made";
  FailNext("TerminateInstances", 500, "InternalError");
  ec2.faults.push_back({.action = "TerminateInstances", .breaks_after = true});
  Delete();
  EXPECT_EQ(Living(), 0);
  EXPECT_EQ(results, std::vector<std::string>{"ready"});
}

TEST_F(AwsFaultsTest, SettingsThatAreWrongEndTheLaunchSoon) {
  config->launch_retries = 10;
  Start();
  FailNext("RunInstances", 400, "InvalidSubnetID.NotFound", 100, "The subnet ID 'x' does not exist");
  Error error = LaunchFails();
  EXPECT_THAT(error.message(), HasSubstr("InvalidSubnetID.NotFound: The subnet ID 'x' does not exist"));
  EXPECT_THAT(error.message(), HasSubstr("(request id request-"));
  EXPECT_EQ(ec2.Count("RunInstances"), 2) << "the second refusal says the same, under another request id";
  FailNext("RunInstances", 403, "UnauthorizedOperation", 100);
  LaunchFails();
  EXPECT_EQ(ec2.Count("RunInstances"), 4);
}

// AWS-46
TEST_F(AwsFaultsTest, InstancesThatDieWhilePending) {
  config->launch_retries = 1;
  Start();
  ec2.next_dies_of = "Server.InsufficientInstanceCapacity";
  LaunchFails();
  ec2.next_dies_of = "Client.VolumeLimitExceeded";
  EXPECT_EQ(LaunchFails().verdict(), Verdict::kQuota);
  ec2.next_dies_of = "Client.InternalError";
  EXPECT_THAT(LaunchFails().message(), HasSubstr("is terminated: Client.InternalError so"));
  EXPECT_THAT(results, ElementsAre("error.capacity", "error.quota", "error.status"));
}

// AWS-47
TEST_F(AwsFaultsTest, AnInstanceThatStaysPending) {
  config->launch_timeout = 5min;
  config->launch_retries = 2;
  ec2.pending = 100h;
  Start();
  LaunchFails();
  EXPECT_THAT(results, ElementsAre("error.servercreatetimeout", "error.servercreatetimeout"));
  EXPECT_EQ(ec2.instances.size(), 2u);
  EXPECT_EQ(Living(), 1) << "the first one was terminated before the second was made";
  Delete();
  EXPECT_EQ(Living(), 0);
}

// AWS-48
TEST_F(AwsFaultsTest, EventualConsistency) {
  ec2.visible_after = 5s;
  Start();
  Launch();
  EXPECT_EQ(last.state, NodeState::kReady);
  ec2.visible_after = 20s;
  ec2.pending = 1h;
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto id = tasks.Spawn("launch", TryToLaunch());
  EXPECT_TRUE(time.RunUntil([this] { return ec2.instances.size() == 2; }));
  time.Advance(1s);
  tasks.Cancel(id);
  time.Run(tasks.Join());
  last.external_id = ExternalId({ec2.instances.rbegin()->first, ""});
  SteadyTime before = time.loop().SteadyNow();
  Delete();
  EXPECT_EQ(Living(), 1);
  EXPECT_GE(time.loop().SteadyNow() - before, 15s) << "EC2 did not know it at first";
}

// AWS-49
TEST_F(AwsFaultsTest, AnInstanceThatVanishesWhilePending) {
  config->launch_retries = 1;
  ec2.pending = 1h;
  Start();
  TaskGroup tasks(time.loop(), log::Logger("test"));
  tasks.Spawn("launch", TryToLaunch());
  time.Advance(10s);
  ec2.instances.clear();
  SteadyTime before = time.loop().SteadyNow();
  time.Run(tasks.Join(), 2h);
  EXPECT_LE(time.loop().SteadyNow() - before, 90s);
  EXPECT_THAT(results, ElementsAre("error.status"));
}

// AWS-50
TEST_F(AwsFaultsTest, AnInstanceThatWasTakenAwayIsMissing) {
  Start();
  std::string living = AddInstance({{"nodepool_provider_name", "ec2"}});
  std::string stopped = AddInstance({{"nodepool_provider_name", "ec2"}});
  ec2.instances[stopped].ending = time.loop().SteadyNow();
  std::vector<boost::json::value> ids = {ExternalId({living, ""}), ExternalId({stopped, ""}),
                                         ExternalId({"i-never", ""})};
  std::vector<boost::json::value> missing = time.Run(adapter->MissingMachines(ids));
  EXPECT_THAT(missing, ElementsAre(ids[1], ids[2]));
}

// AWS-82
TEST_F(AwsFaultsTest, WhatTheListShowsAsEndedIsDeletedAtTheFirstCheck) {
  Start();
  Launch();
  auto state = [this] { return time.Run(store.nodes.Read(last_id))->record.state; };
  time.Advance(60s);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(state(), NodeState::kReady);
  ec2.instances.begin()->second.ending = time.loop().SteadyNow();
  time.Advance(60s);
  time.Run(provider->CleanupLeakedResources());
  EXPECT_EQ(state(), NodeState::kDeleting);
}

// AWS-83. The image's terms were not accepted. New credentials would not help, nor another candidate.
TEST_F(AwsFaultsTest, AnImageWhoseTermsWereNotAccepted) {
  label->instance_types = {"m5.large", "t3.medium"};
  config->launch_retries = 3;
  Start();
  FailNext("RunInstances", 401, "OptInRequired", 100, "In order to use this, go to http://market.example");
  Error refusal = LaunchFails();
  EXPECT_THAT(refusal.message(), HasSubstr("go to http://market.example; accept the terms of the image"));
  EXPECT_EQ(ec2.Count("RunInstances"), 2) << "the same refusal twice is enough";
}

// AWS-83. The account's rules may permit another type, or another subnet.
TEST_F(AwsFaultsTest, ACandidateThatIsForbiddenLeadsToTheNext) {
  label->instance_types = {"m5.large", "t3.medium"};
  Start();
  FailNext("RunInstances", 403, "UnauthorizedOperation", 1, "with an explicit deny");
  Launch();
  EXPECT_THAT(results, ElementsAre("ready"));
  EXPECT_EQ(ec2.instances.begin()->second.type, "t3.medium");
}

// It will not pass by itself, as a lack of capacity does.
TEST_F(AwsFaultsTest, CandidatesThatAreAllForbiddenFailTheLaunch) {
  label->instance_types = {"m5.large", "t3.medium"};
  config->launch_retries = 1;
  Start();
  FailNext("RunInstances", 403, "UnauthorizedOperation", 2, "with an explicit deny");
  Error refusal = LaunchFails();
  EXPECT_EQ(refusal.verdict(), Verdict::kFail);
  EXPECT_THAT(refusal.message(), HasSubstr("give the key's user or role this right"));
  EXPECT_EQ(ec2.Count("RunInstances"), 2);
}

// AWS-70
TEST_F(AwsFaultsTest, AWrongSecretIsReportedOnce) {
  FailNext("DescribeInstanceTypes", 401, "AuthFailure", 1000, "AWS was not able to validate the credentials");
  Start();
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(
      WithoutRequestIds(faults.front()),
      "DescribeInstanceTypes at https://ec2.us-west-2.amazonaws.com/: 401 AuthFailure: AWS was not able to "
      "validate the credentials; check the key, and that it belongs to this region");
  EXPECT_THAT(faults.front(), HasSubstr(" (request id request-"));
  time.Advance(10min);
  for (const std::string& fault : faults) {
    EXPECT_EQ(WithoutRequestIds(fault), WithoutRequestIds(faults.front())) << "the same text each time";
  }
  ec2.faults.clear();
  time.Advance(1min);
  EXPECT_EQ(faults.back(), "");
  for (const std::string& fault : faults) EXPECT_THAT(fault, Not(HasSubstr("top-secret")));
}

// What an operator reads of each kind of failure: the call, AWS's id of it if there was an answer, a remedy.
struct OneLine {
  const char* name;
  testing::Ec2Imposter::Fault fault;
  std::vector<std::string> words;
};

class AwsOneLineTest : public AwsFaultsTest, public ::testing::WithParamInterface<OneLine> {};

// AWS-79
TEST_P(AwsOneLineTest, NamesCallRequestIdAndRemedy) {
  testing::Ec2Imposter::Fault fault = GetParam().fault;
  fault.action = "DescribeInstanceTypes";
  fault.times = 1000;
  ec2.faults.push_back(fault);
  log::Capture log;
  Start();
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults.front(), HasSubstr("DescribeInstanceTypes"));
  for (const std::string& word : GetParam().words) EXPECT_THAT(faults.front(), HasSubstr(word));
  bool has_answer = !fault.breaks_before && !fault.has_no_host;
  EXPECT_EQ(faults.front().find("(request id request-") != std::string::npos, has_answer) << faults.front();
  EXPECT_EQ(log.Count("request-"), 0) << "nothing beside the fault, which the launcher logs";
}

INSTANTIATE_TEST_SUITE_P(
    All, AwsOneLineTest,
    ::testing::Values(
        OneLine{"WrongKey", {.status = 401, .code = "AuthFailure"}, {"401 AuthFailure", "check the key"}},
        OneLine{"ExpiredToken", {.code = "ExpiredToken"}, {"400 ExpiredToken", "renew the credentials"}},
        OneLine{
            "WrongClock", {.code = "RequestExpired"}, {"400 RequestExpired", "correct this host's clock"}},
        OneLine{"MissingRight",
                {.status = 403, .code = "UnauthorizedOperation"},
                {"403 UnauthorizedOperation", "give the key's user or role this right"}},
        OneLine{
            "UnknownRegion",
            {.has_no_host = true},
            {"Could not resolve host", "check region-name (us-west-2) and the AWS_ENDPOINT_URL settings"}},
        OneLine{"NoXml", {.body = "<p>Please log in"}, {"no XML: Please log in", "proxies lead to AWS"}},
        OneLine{"HalfAnAnswer",
                {.body = "<DescribeInstanceTypesResponse><instanceTypeSet><item>"},
                {"ends in the middle, after 54 bytes", "proxies lead to AWS"}},
        OneLine{"BrokenConnection",
                {.breaks_before = true},
                {"the connection broke", "check the way from this host to AWS"}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace nodepool::drivers::aws
