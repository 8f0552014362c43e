// Floating IPs of servers, and the address that is told to users.
#include <boost/json/parse.hpp>

#include "async/task_group.h"
#include "base/json_fields.h"
#include "drivers/openstack/openstack_fixture_for_test.h"

namespace nodepool::drivers::openstack {
namespace {

using ::testing::HasSubstr;

class FloatingIpTest : public OpenstackTest {
 protected:
  void SetUp() override {
    OpenstackTest::SetUp();
    pool->auto_floating_ip = true;
    config->cloud_config.is_private = false;
  }
};

// LA-70, O-auto-fip
TEST_F(FloatingIpTest, IsMadeAndRemovedWithTheServer) {
  Start();
  Launch();
  ASSERT_EQ(imposter.floating_ips.size(), 1u);
  const auto& ip = imposter.floating_ips.begin()->second;
  EXPECT_EQ(last.public_ipv4, ip.address);
  EXPECT_EQ(last.interface_ip, ip.address);
  EXPECT_NE(last.private_ipv4, ip.address);
  Delete();
  EXPECT_TRUE(imposter.floating_ips.empty());
  EXPECT_TRUE(imposter.servers.empty());
  EXPECT_EQ(imposter.Count("POST", "/network/v2.0/floatingips"), 1);
  EXPECT_EQ(imposter.Count("GET", "/network/v2.0/ports"), 1);
  EXPECT_EQ(imposter.Counts().at("DELETE /network/v2.0/floatingips/ID"), 1);
}

// LA-70, O-auto-fip
TEST_F(FloatingIpTest, IsNotMadeWhereNotWanted) {
  pool->auto_floating_ip = false;
  Start();
  Launch();
  EXPECT_TRUE(imposter.floating_ips.empty());
  EXPECT_EQ(last.public_ipv4, "");
  EXPECT_EQ(last.interface_ip, last.private_ipv4) << "D-95: the first fixed address stands in";
}

// Whether any is bound says the list that all share; ports are asked for only then.
TEST_F(FloatingIpTest, ManyWithoutOneShareTheList) {
  pool->auto_floating_ip = false;
  imposter.limits["maxTotalInstances"] = 100;
  Start();
  TaskGroup launches(time.loop(), log::Logger("test"));
  for (int i = 0; i < 20; ++i) launches.Spawn("launch", LaunchNode());
  time.Run(launches.Join());
  EXPECT_EQ(imposter.servers.size(), 20u);
  EXPECT_EQ(imposter.Count("GET", "/network/v2.0/ports"), 0);
  EXPECT_LE(imposter.Count("GET", "/network/v2.0/floatingips"), 2);
}

// driver-openstack.md 10.1
TEST_F(FloatingIpTest, ARouterKnowsTheNetworkThatDoesNotShowItself) {
  imposter.shows_external_network = false;
  Start();
  Launch();
  ASSERT_EQ(imposter.floating_ips.size(), 1u);
  boost::json::value body = boost::json::parse(imposter.LastCall("POST", "/network/v2.0/floatingips")->body);
  EXPECT_EQ(TextIn(body.at("floatingip").as_object(), "floating_network_id"),
            "a43d269d-4465-463c-b095-40a8ff58faaa");
  EXPECT_EQ(imposter.Count("GET", "/network/v2.0/routers"), 1);
}

// driver-openstack.md 9.2: the cloud has given the server an address that nova does not show.
class HiddenFloatingIpTest : public FloatingIpTest {
 protected:
  // Launches a node whose server gets the address while it is built.
  void LaunchWithHiddenIp() {
    imposter.next_lists_until_active = 3;
    TaskGroup launches(time.loop(), log::Logger("test"));
    launches.Spawn("launch", LaunchNode());
    ASSERT_TRUE(time.RunUntil([&] { return !imposter.servers.empty(); }));
    std::string server = imposter.servers.begin()->first;
    for (const auto& [id, port] : imposter.ports) {
      if (port.device_id == server) imposter.floating_ips["hidden"] = {"203.0.114.77", id, 0};
    }
    time.Run(launches.Join());
    ASSERT_EQ(last.state, NodeState::kReady);
  }
};

TEST_F(HiddenFloatingIpTest, IsFoundWhereNoneIsMade) {
  pool->auto_floating_ip = false;
  Start();
  LaunchWithHiddenIp();
  EXPECT_EQ(last.public_ipv4, "203.0.114.77");
  EXPECT_EQ(last.interface_ip, "203.0.114.77");
  EXPECT_EQ(imposter.Count("POST", "/network/v2.0/floatingips"), 0);
}

TEST_F(HiddenFloatingIpTest, IsTakenWhereOneWouldBeMade) {
  Start();
  LaunchWithHiddenIp();
  EXPECT_EQ(last.public_ipv4, "203.0.114.77");
  EXPECT_EQ(imposter.floating_ips.size(), 1u);
}

TEST_F(HiddenFloatingIpTest, IsRemovedByALauncherThatDidNotMakeIt) {
  Start();
  Launch();
  ASSERT_EQ(imposter.floating_ips.size(), 1u);
  // What the first launcher remembered is gone.
  time.Run(provider->Stop(), std::chrono::hours(3));
  Start();
  Delete();
  EXPECT_TRUE(imposter.floating_ips.empty());
}

TEST_F(HiddenFloatingIpTest, IsNoFailureWhenItCannotBeLookedFor) {
  pool->auto_floating_ip = false;
  Start();
  imposter.Add({.method = "GET", .path = "/network/v2.0/floatingips", .status = 500, .times = 10});
  Launch();
  EXPECT_EQ(last.public_ipv4, "");
}

// driver-openstack.md 9.3
class TriedAddressesTest : public OpenstackTest {
 protected:
  void SetUp() override {
    OpenstackTest::SetUp();
    config->cloud_config.is_private = false;
    config->cloud_config.networks = {{.name = "private", .routes_ipv4_externally = true}};
  }

  void StartProbing(std::optional<std::string> open) {
    Start();
    adapter->SetProbe([this, open](std::vector<std::string> addresses, SteadyTime) {
      tried = std::move(addresses);
      return Tell(open);
    });
  }
  static Task<std::optional<std::string>> Tell(std::optional<std::string> open) { co_return open; }

  void LaunchWithTwoAddresses() {
    imposter.next_lists_until_active = 3;
    TaskGroup launches(time.loop(), log::Logger("test"));
    launches.Spawn("launch", LaunchNode());
    ASSERT_TRUE(time.RunUntil([&] { return !imposter.servers.empty(); }));
    boost::json::object& record = imposter.servers.begin()->second.record;
    record["addresses"].as_object()["private"].as_array().push_back(
        boost::json::object{{"version", 4}, {"addr", "10.9.9.9"}, {"OS-EXT-IPS:type", "fixed"}});
    time.Run(launches.Join());
  }

  std::vector<std::string> tried;
};

TEST_F(TriedAddressesTest, TheOneThatAnswersIsTaken) {
  StartProbing("10.9.9.9");
  LaunchWithTwoAddresses();
  EXPECT_EQ(tried.size(), 2u);
  EXPECT_EQ(last.interface_ip, "10.9.9.9");
}

TEST_F(TriedAddressesTest, TheFirstIsTakenWhenNoneAnswers) {
  StartProbing(std::nullopt);
  LaunchWithTwoAddresses();
  EXPECT_EQ(tried.size(), 2u);
  EXPECT_EQ(last.interface_ip, tried.front());
}

TEST_F(TriedAddressesTest, AnOnlyAddressIsNotTried) {
  StartProbing("10.9.9.9");
  Launch();
  EXPECT_EQ(tried.size(), 0u);
}

TEST_F(FloatingIpTest, NoneLeftIsQuota) {
  Start();
  imposter.Add({.method = "POST",
                .path = "/network/v2.0/floatingips",
                .status = 409,
                .body = R"({"NeutronError":{"type":"OverQuota","message":"Quota exceeded for resources: )"
                        R"(['floatingip'].","detail":""}})"});
  Error error = LaunchFails();
  EXPECT_EQ(error.verdict(), Verdict::kQuota);
  EXPECT_THAT(error.message(), HasSubstr("['floatingip']"));
}

TEST_F(FloatingIpTest, ThatNeverBecomesActiveIsANetworkFailure) {
  Start();
  config->launch_retries = 1;
  TaskGroup launches(time.loop(), log::Logger("test"));
  launches.Spawn("launch", LaunchNode());
  ASSERT_TRUE(time.RunUntil([&] { return !imposter.floating_ips.empty(); }));
  imposter.floating_ips.begin()->second.lists_until_active = 1'000'000;
  time.Run(launches.Join());
  EXPECT_EQ(results.front(), "error.network");
  Delete();
  EXPECT_TRUE(imposter.floating_ips.empty());
}

}  // namespace
}  // namespace nodepool::drivers::openstack
