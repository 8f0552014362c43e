#include "drivers/openstack/network/networks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "async/task_group.h"
#include "base/json_fields.h"
#include "drivers/openstack/api/cloud.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/api/versions.h"
#include "drivers/openstack/openstack_fixture_for_test.h"

namespace nodepool::drivers::openstack {

// Floating IPs of servers, and the addresses that clients get.

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
  EXPECT_EQ(last.interface_ip, last.private_ipv4) << "D-95: the first fixed address is used instead";
}

// The shared list shows whether any is bound; ports are read only then.
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
TEST_F(FloatingIpTest, ARouterShowsTheExternalNetwork) {
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
  // The first launcher's cache is gone.
  time.Run(provider->Stop(), std::chrono::hours(3));
  Start();
  Delete();
  EXPECT_TRUE(imposter.floating_ips.empty());
}

TEST_F(HiddenFloatingIpTest, AFailedSearchIsNotAFailure) {
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
    probe = [this, open](std::vector<std::string> addresses, SteadyTime) {
      tried = std::move(addresses);
      return Tell(open);
    };
    Start();
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

// Pure functions: addresses, networks, flavors, endpoints, versions.

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AddressesTest : public ::testing::Test {
 protected:
  AddressesTest() {
    networks = {{.id = "1", .name = "inner", .has_gateway = true},
                {.id = "2", .name = "outer", .is_external = true}};
    server.addresses = {{.network = "inner", .version = 4, .text = "10.0.0.5", .mac = "m1"}};
  }
  ChosenAddresses Choose(bool has_ipv6 = false) {
    return ChooseAddresses(server, ClassifyNetworks(networks, cloud), cloud, has_ipv6);
  }
  bool NeedsIp() { return NeedsFloatingIp(server, Choose(), ClassifyNetworks(networks, cloud), cloud); }
  Server server;
  CloudConfig cloud;
  std::vector<Network> networks;
};

TEST_F(AddressesTest, AnInternalOneNeedsAFloatingIp) {
  ChosenAddresses chosen = Choose();
  EXPECT_EQ(chosen.private_ipv4, "10.0.0.5");
  EXPECT_EQ(chosen.public_ipv4, "");
  EXPECT_EQ(chosen.interface_ip, "10.0.0.5");
  EXPECT_TRUE(chosen.is_guess) << "D-95";
  EXPECT_TRUE(NeedsIp());
  server.addresses.push_back({.network = "inner", .text = "203.0.114.9", .mac = "m1", .is_floating = true});
  chosen = Choose();
  EXPECT_EQ(chosen.public_ipv4, "203.0.114.9");
  EXPECT_EQ(chosen.private_ipv4, "10.0.0.5");
  EXPECT_EQ(chosen.interface_ip, "203.0.114.9");
  EXPECT_FALSE(NeedsIp());
}

TEST_F(AddressesTest, AnExternalNetworkNeedsNone) {
  server.addresses.push_back({.network = "outer", .text = "192.0.2.7"});
  EXPECT_EQ(Choose().public_ipv4, "192.0.2.7");
  EXPECT_FALSE(NeedsIp());
}

TEST_F(AddressesTest, APrivateCloudUsesPrivateAddresses) {
  cloud.is_private = true;
  EXPECT_EQ(Choose().interface_ip, "10.0.0.5");
  EXPECT_FALSE(Choose().is_guess);
  EXPECT_FALSE(NeedsIp());
}

// O-ip-version
TEST_F(AddressesTest, Ipv6WhereThisHostHasIt) {
  server.addresses.push_back({.network = "outer", .version = 6, .text = "2001:db8::1"});
  server.addresses.push_back({.network = "outer", .text = "8.8.8.8"});
  EXPECT_EQ(Choose(true).interface_ip, "2001:db8::1");
  EXPECT_EQ(Choose(false).interface_ip, "8.8.8.8");
  EXPECT_EQ(Choose(false).public_ipv6, "2001:db8::1");
  cloud.forces_ipv4 = true;
  EXPECT_EQ(Choose(true).interface_ip, "8.8.8.8");
  EXPECT_EQ(Choose(true).public_ipv6, "");
}

TEST_F(AddressesTest, ConfiguredNetworksDecide) {
  cloud.networks = {{.name = "inner", .routes_ipv4_externally = true, .is_default_interface = true}};
  EXPECT_EQ(Choose().public_ipv4, "10.0.0.5");
  EXPECT_EQ(Choose().interface_ip, "10.0.0.5");
  EXPECT_FALSE(NeedsIp());
  cloud.networks = {{.name = "missing", .is_nat_source = true}};
  EXPECT_THROW(Choose(), Error);
  networks.push_back({.id = "3", .name = "inner"});
  cloud.networks = {{.name = "inner", .is_nat_destination = true}};
  EXPECT_THROW(Choose(), Error);
}

TEST_F(AddressesTest, TheAddressThatNovaNamesWins) {
  server.access_ipv4 = "1.2.3.4";
  EXPECT_EQ(Choose().public_ipv4, "1.2.3.4");
  cloud.uses_external_network = false;
  EXPECT_EQ(Choose().public_ipv4, "");
}

TEST(ReservedAddresses, AreKnown) {
  for (const char* text :
       {"10.1.2.3", "127.0.0.1", "172.31.0.1", "192.168.1.1", "100.64.0.1", "224.0.0.1", "junk"}) {
    EXPECT_TRUE(IsReservedIpv4(text)) << text;
  }
  for (const char* text : {"8.8.8.8", "172.32.0.1", "100.128.0.1"})
    EXPECT_FALSE(IsReservedIpv4(text)) << text;
}

TEST(FloatingTargets, AreOnTheNetworkForThem) {
  NetworkRoles roles;
  EXPECT_FALSE(ChooseTarget({}, roles));
  Port first{.id = "p1", .network_id = "n1", .created_at = "1", .fixed_ipv4 = {"10.0.0.1"}};
  Port second{.id = "p2", .network_id = "n2", .created_at = "2", .fixed_ipv4 = {"10.0.1.1"}};
  EXPECT_EQ(ChooseTarget({first}, roles)->port_id, "p1");
  EXPECT_THROW(ChooseTarget({first, second}, roles), Error);
  roles.nat_destination = "n2";
  EXPECT_EQ(ChooseTarget({first, second}, roles)->port_id, "p2");
  second.fixed_ipv4.clear();
  EXPECT_FALSE(ChooseTarget({first, second}, roles));
}

// D-91, O-flavor-name
TEST(Flavors, AreChosen) {
  std::vector<Flavor> flavors = {{"1", "small-a", 1, 1024}, {"2", "small-b", 1, 2048}, {"3", "big", 8, 8192}};
  OpenstackLabel label;
  label.min_ram = 2000;
  EXPECT_EQ(ChooseFlavor(flavors, label).id, "2");
  label.flavor_name = "big";
  EXPECT_EQ(ChooseFlavor(flavors, label).id, "3");
  label.min_ram = 0;
  EXPECT_EQ(ChooseFlavor(flavors, label).id, "3");
  label.flavor_name = "small";
  EXPECT_THROW(ChooseFlavor(flavors, label), Error) << "exact names only";
  label.flavor_name = "2";
  EXPECT_EQ(ChooseFlavor(flavors, label).name, "small-b");
  label.min_ram = 9000;
  try {
    ChooseFlavor(flavors, label);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kInvalid);
    EXPECT_THAT(error.message(), HasSubstr("Unable to find flavor with min ram: 9000"));
  }
}

TEST(Catalog, IsSearchedByTypeRegionAndInterface) {
  boost::json::array catalog = boost::json::parse(R"([
    {"type": "volumev2", "name": "cinderv2", "endpoints": [{"interface": "public", "region": "r1", "url": "v2"}]},
    {"type": "volumev3", "name": "cinder", "endpoints": [
      {"interface": "internal", "region_id": "r1", "url": "in"}, {"interface": "public", "region_id": "r2", "url": "r2"},
      {"interface": "public", "region_id": "r1", "url": "out"}]}])")
                                   .as_array();
  CloudConfig cloud;
  cloud.interfaces = {"public"};
  cloud.region = "r1";
  EXPECT_EQ(FindEndpoint(catalog, cloud, Service::kBlockStorage), "out");
  EXPECT_EQ(FindEndpoint(catalog, cloud, Service::kCompute), std::nullopt);
  cloud.interfaces = {"internal", "public"};
  EXPECT_EQ(FindEndpoint(catalog, cloud, Service::kBlockStorage), "in");
  cloud.Of(Service::kBlockStorage).region = "r2";
  EXPECT_EQ(FindEndpoint(catalog, cloud, Service::kBlockStorage), "r2");
  cloud.Of(Service::kBlockStorage).name = "other";
  EXPECT_EQ(FindEndpoint(catalog, cloud, Service::kBlockStorage), std::nullopt);
}

TEST(Versions, OfDocuments) {
  EXPECT_EQ(ParseVersion("v2.1"), (VersionNumber{2, 1}));
  EXPECT_EQ(ParseVersion("3"), (VersionNumber{3, 0}));
  EXPECT_EQ(ParseVersion("2.x"), VersionNumber());
  auto versions = ReadVersions(R"({"versions": [
    {"id": "v2.0", "status": "SUPPORTED", "links": [{"rel": "self", "href": "http://x/v2/"}]},
    {"id": "v2.9", "status": "EXPERIMENTAL"},
    {"id": "v2.1", "status": "CURRENT", "version": "2.93", "min_version": "2.1",
     "links": [{"rel": "self", "href": "http://wrong/compute/v2.1/"}]}]})");
  const Version* best = BestVersion(versions, 2);
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(best->max, (VersionNumber{2, 93}));
  EXPECT_EQ(VersionUrl("https://right:1/compute", *best, "/v2"), "https://right:1/compute/v2.1");
  EXPECT_EQ(BestVersion(versions, 3), nullptr);
  EXPECT_THAT(ReadVersions("<html>"), IsEmpty());
}

TEST(ApiNames, HaveNoIds) {
  EXPECT_EQ(ApiName("/servers/detail"), "servers_detail");
  EXPECT_EQ(ApiName("/servers/1234"), "server");
  EXPECT_EQ(ApiName("/servers/1234/action"), "server_action");
  EXPECT_EQ(ApiName("/ports"), "ports");
  EXPECT_EQ(ApiName(""), "discovery");
}

TEST(Faults, TextOfAnyBody) {
  EXPECT_EQ(ReadFault(404, R"({"NeutronError": "plain"})").text, "plain");
  EXPECT_EQ(ReadFault(404, R"({"NeutronError": "plain"})").verdict, Verdict::kNotFound);
  EXPECT_EQ(ReadFault(403, R"({"message": "Quota exceeded"})").verdict, Verdict::kQuota);
  EXPECT_TRUE(MentionsQuota("Requested volume or snapshot exceeds allowed gigabytes quota."));
  EXPECT_TRUE(MentionsQuota("VolumeSizeExceedsAvailableQuota"));
  EXPECT_EQ(
      ReadFault(403, R"({"forbidden": {"message": "Maximum number of floating IPs exceeded"}})").verdict,
      Verdict::kQuota);
  EXPECT_TRUE(MentionsQuota("Maximum number of volumes allowed (10) exceeded"));
  EXPECT_FALSE(MentionsQuota("Maximum number of attempts to find a host"));
  EXPECT_FALSE(MentionsQuota("the quota service is down"));
}

}  // namespace

}  // namespace nodepool::drivers::openstack
