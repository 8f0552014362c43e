// Spot instances that AWS takes away, and what is read for the diagnosis of failed launches.
#include "drivers/aws/aws_fixture_for_test.h"

namespace nodepool::drivers::aws {
namespace {

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
