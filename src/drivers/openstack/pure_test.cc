// Pure functions: addresses, networks, flavors, endpoints, versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "drivers/openstack/api/endpoints.h"
#include "drivers/openstack/api/lookups.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/api/versions.h"
#include "drivers/openstack/network/addresses.h"
#include "drivers/openstack/network/floating_ip.h"

namespace nodepool::drivers::openstack {
namespace {

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
