#include "drivers/libvirt/host/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/libvirt/machine/machine_fixture_for_test.h"
#include "drivers/libvirt/names.h"

namespace nodepool::drivers::libvirt {

namespace {

using ::testing::HasSubstr;
using Kind = MachineNetwork::Kind;
using driver::cloud::Instance;
using driver::testing::Recorder;

// LV-11
TEST_F(MachineTest, MachinesOfAUserNetworkAreReachedAtPortsThatDiffer) {
  Start();
  label->network = MachineNetwork{Kind::kUser, ""};
  label->vcpus = 1;
  std::vector<Recorder> machines(4);
  std::set<std::int64_t> ports;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    Instance instance = Create(machines[i], fmt::format("000000000{}", i));
    EXPECT_EQ(instance.interface_ip, "127.0.0.1");
    ASSERT_TRUE(instance.connection.connection_port);
    ports.insert(instance.connection.connection_port->as_int64());
  }
  EXPECT_EQ(ports.size(), machines.size());
  EXPECT_EQ(Fake().lease_calls, 0);
}

// LV-11
TEST_F(MachineTest, APortThatAnotherProgramHasIsPassedOver) {
  Start();
  label->network = MachineNetwork{Kind::kUser, ""};
  for (int port = 22000; port < 22999; ++port) Fake().taken_ports.insert(port);
  EXPECT_THAT(CreateFails("0000000043").message(), HasSubstr("host forwarding rule"));
  EXPECT_EQ(Fake().refused_ports.size(), 6U);
  CreateFails("0000000044");
  std::set<int> differ(Fake().refused_ports.begin(), Fake().refused_ports.end());
  EXPECT_EQ(differ.size(), 12U) << "none is tried again";
}

TEST(ForwardedPorts, AreAnyThatAreFree) {
  SeededRandom random(1);
  std::set<int> all, given;
  for (int port = 22000; port < 23000; ++port) all.insert(port);
  EXPECT_EQ(FreePort(all, random), std::nullopt);
  all.erase(22002);
  all.erase(22999);
  for (int i = 0; i < 100; ++i) given.insert(*FreePort(all, random));
  EXPECT_THAT(given, ::testing::ElementsAre(22002, 22999));
  EXPECT_EQ(BindAddress("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(BindAddress("rack1.example.org"), "");
}

TEST(ForwardedPorts, ThatWereRefusedAreLeftOutForAWhile) {
  SteadyTime now{};
  RefusedPorts refused;
  refused.Add(22000, now);
  refused.Add(22001, now + std::chrono::minutes(5));
  EXPECT_THAT(refused.At(now + std::chrono::minutes(9)), ::testing::ElementsAre(22000, 22001));
  EXPECT_THAT(refused.At(now + std::chrono::minutes(10)), ::testing::ElementsAre(22001));
}

// LV-12
TEST_F(MachineTest, OnABridgeTheGuestAgentTellsTheAddress) {
  Start();
  label->network = MachineNetwork{Kind::kBridge, "br0"};
  Fake().addresses = {{AddressSource::kAgent, "192.0.2.77"}, {AddressSource::kArp, "192.0.2.99"}};
  Recorder machine;
  EXPECT_EQ(Create(machine).interface_ip, "192.0.2.77");
  EXPECT_EQ(Fake().lease_calls, 0);
}

// LV-12
TEST_F(MachineTest, WithoutAnAgentTheArpTableTellsTheAddress) {
  Start();
  label->network = MachineNetwork{Kind::kBridge, "br0"};
  Fake().addresses = {{AddressSource::kArp, "2001:db8::77"}};
  Recorder machine;
  Instance instance = Create(machine);
  EXPECT_EQ(instance.interface_ip, "2001:db8::77");
  EXPECT_EQ(instance.public_ipv6, "2001:db8::77");
}

// LV-13
TEST_F(MachineTest, WithoutAnAddressTheMessageSaysWhatWasTried) {
  Start();
  config->launch_timeout = std::chrono::minutes(5);
  Fake().boot_time = std::chrono::hours(1);
  SteadyTime begun = time.loop().SteadyNow();
  Error error = CreateFails();
  EXPECT_LT(time.loop().SteadyNow() - begun, config->launch_timeout);
  EXPECT_THAT(error.message(), HasSubstr("the DHCP server of network default knows none of 52:54:00:"));
  EXPECT_THAT(error.message(), HasSubstr("the console is empty"));
  EXPECT_LE(Fake().lease_calls, 30 * 4 + 270) << "after half a minute once a second";
}

// LV-13
TEST_F(MachineTest, WithoutAFreeAddressTheMessageSaysSo) {
  Start();
  Fake().boot_time = std::chrono::hours(1);
  Fake().former_leases = {{"52:54:00:00:00:01", "192.0.2.2", false},
                          {"52:54:00:00:00:02", "192.0.2.3", false}};
  Fake().lease_range = 2;
  EXPECT_THAT(CreateFails().message(), HasSubstr("network default has 2 leases of 2 addresses"));
  Fake().lease_range = 20;
  EXPECT_THAT(CreateFails("0000000043").message(), ::testing::Not(HasSubstr("leases of")));
}

// LV-7
TEST_F(MachineTest, AMachineIsNotGivenTheAddressOfAnother) {
  Start();
  label->vcpus = 1;
  Fake().gives_one_address = true;
  Recorder first;
  Create(first, "0000000001");
  Error error = CreateFails("0000000002");
  EXPECT_THAT(error.message(), HasSubstr("was given the address 192.0.2.10, which machine"));
  EXPECT_THAT(error.message(), HasSubstr("/etc/machine-id"));
  Fake().EndDomain(std::string(first.external_id.as_string()).substr(2));
  Recorder third;
  EXPECT_EQ(Create(third, "0000000003").interface_ip, "192.0.2.10") << "the first one has ended";
}

TEST(Addresses, ThatOthersCannotReachDoNotCount) {
  const std::string mac = "52:54:00:00:00:01";
  for (const char* address : {"127.0.0.1", "169.254.3.4", "::1", "fe80::1", "none"}) {
    EXPECT_EQ(AddressIn({{mac, address, false}}, mac), "") << address;
  }
  EXPECT_EQ(AddressIn({{mac, "2001:db8::1", true}, {mac, "192.0.2.1", false}}, mac), "192.0.2.1");
  EXPECT_EQ(AddressIn({{"52:54:00:00:00:02", "192.0.2.1", false}}, mac), "");
}

constexpr const char* kMachineUuid = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";

TEST(VolumeNames, SayWhoseAMachinesVolumeIs) {
  MachineVolume volume{"here", "0000000042", "0a1b2c3d", kRootPart};
  EXPECT_EQ(NameOf(volume), "np.here.node.0000000042.0a1b2c3d.root");
  EXPECT_EQ(ParseMachineVolume(NameOf(volume)), volume);
  std::map<std::string, std::string> metadata = {{"nodepool_provider_name", "here"},
                                                 {"nodepool_node_id", "0000000042"}};
  EXPECT_EQ(MetadataOf(volume), metadata);
}

TEST(VolumeNames, SayOfWhichUploadAnImageIs) {
  ImageVolume volume{"here", "0000000007", "0000000001", "qcow2"};
  EXPECT_EQ(NameOf(volume), "np.here.image.0000000007.0000000001.qcow2");
  EXPECT_EQ(ParseImageVolume(NameOf(volume)), volume);
  EXPECT_EQ(MetadataOf(volume).at("nodepool_upload_id"), "0000000001");
}

TEST(VolumeNames, AMarkSaysWhichImageIsUnfinished) {
  ImageVolume volume{"here", "0000000007", "0000000001", "qcow2"};
  std::string mark = MarkOf(NameOf(volume));
  EXPECT_EQ(ParseMark(mark), volume);
  EXPECT_EQ(ParseImageVolume(mark), std::nullopt);
  EXPECT_EQ(ParseMark(NameOf(volume)), std::nullopt);
  EXPECT_EQ(ParseMark("debian.unfinished"), std::nullopt);
}

// LV-38
TEST(VolumeNames, AnyProviderNameReadsBack) {
  for (const char* provider :
       {"a.b", "a/b", "../x", "%2e", "node", "np", "Büro", " ", "a\nb", "np.x.node.1"}) {
    MachineVolume volume{provider, "0000000042", "0a1b2c3d", kConsolePart};
    EXPECT_EQ(ParseMachineVolume(NameOf(volume)), volume) << provider;
    EXPECT_EQ(NameOf(volume).find('/'), std::string::npos) << provider;
    EXPECT_EQ(ParseImageVolume(NameOf(volume)), std::nullopt) << provider;
    ImageVolume image{provider, "0000000007", "0000000001", "raw"};
    EXPECT_EQ(ParseImageVolume(NameOf(image)), image) << provider;
  }
}

TEST(VolumeNames, OfFetchedImagesReadBack) {
  FetchedVolume image{"he.re", std::string(64, 'a'), "qcow2"};
  auto parsed = ParseFetchedVolume(NameOf(image));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->provider, "he.re");
  EXPECT_EQ(parsed->format, "qcow2");
  for (const char* name : {"np.here.cloud.aaaa.qcow2", "np.here.image.aaaaaaaaaaaaaaaa.qcow2",
                           "np.here.cloud.aaaaaaaaaaaaaaaa.qcow2.unfinished", "debian.qcow2"}) {
    EXPECT_FALSE(ParseFetchedVolume(name)) << name;
  }
  EXPECT_EQ(WithoutMark(MarkOf(NameOf(image))), NameOf(image));
  EXPECT_EQ(WithoutMark("debian.qcow2"), "debian.qcow2");
}

TEST(VolumeNames, ALogThatWasRotatedBelongsToItsMachine) {
  auto volume = ParseMachineVolume("np.here.node.0000000042.0a1b2c3d.console.0");
  ASSERT_TRUE(volume);
  EXPECT_EQ(volume->part, "console.0");
  EXPECT_EQ(NameOf(*volume), "np.here.node.0000000042.0a1b2c3d.console.0");
}

// LV-29
TEST(VolumeNames, OtherNamesAreForeign) {
  for (const char* name :
       {"", "debian.qcow2", "np", "np.here", "np.here.node.1.0a1b2c3d", "np.here.node.1.0a1b2c3d.root.0",
        "np.here.node.1.0a1b2c3d.other", "np.here.node.1.0A1B2C3D.root", "np.here.node.1.0a1b2c3.root",
        "np..node.1.0a1b2c3d.root", "np.%61.node.1.0a1b2c3d.root", "np.%zz.node.1.0a1b2c3d.root",
        "np.%2.node.1.0a1b2c3d.root", "xx.here.node.1.0a1b2c3d.root", "np.here.node.1.0a1b2c3d.root.",
        "np.here.node.1.0a1b2c3d.console.x"}) {
    EXPECT_EQ(ParseMachineVolume(name), std::nullopt) << name;
  }
  EXPECT_EQ(ParseImageVolume("np.here.image.1.2"), std::nullopt);
  EXPECT_EQ(ParseImageVolume("np.here.image.1.2.raw.3"), std::nullopt);
}

TEST(MachineIds, AreHostAndUuid) {
  MachineId id{"rack-1", kMachineUuid};
  EXPECT_EQ(id.ToText(), std::string("rack-1/") + kMachineUuid);
  EXPECT_EQ(ParseMachineId(id.ToText()), id);
  EXPECT_EQ(id.digits(), "0a1b2c3d");
  EXPECT_EQ(MacAddressOf(id), "52:54:00:0a:1b:2c");
  EXPECT_EQ(MacAddressOf(id, 2), "52:54:02:0a:1b:2c");
  for (const std::string& text :
       {std::string(), std::string(kMachineUuid), std::string("/") + kMachineUuid,
        std::string("a/0A1B2C3D-4e5f-4a6b-8c7d-9e0f1a2b3c4d"), std::string("a/b/") + kMachineUuid,
        std::string("a/") + kMachineUuid + "0"}) {
    EXPECT_EQ(ParseMachineId(text), std::nullopt) << text;
  }
}

}  // namespace

}  // namespace nodepool::drivers::libvirt
