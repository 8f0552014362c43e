// What is in a node's record, and in the cloud, after a launch (launcher.md 17).
#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Metadata = std::map<std::string, std::string>;

constexpr const char* kDiskImages =
    "diskimages: [{name: debian, username: builder, python-path: /usr/bin/python3}]";

class NodeRecordTest : public CloudTest {
 protected:
  // The record of a node launched for a request.
  Node Launch(const std::string& label = "small", std::function<void(NodeRequest&)> adjust = {}) {
    RequestId id = Request({label}, std::move(adjust));
    if (AwaitState(id, RequestState::kFulfilled)) return NodeOf(id);
    ADD_FAILURE() << "no node of " << label;
    return {};
  }
};

TEST_F(NodeRecordTest, EverythingFromConfigurationCloudAndRequest) {  // LA-01
  top_ = kDiskImages;
  AddCloud({.provider = "region-name: north, diskimages: [{name: debian}]",
            .pool = "availability-zones: [az1]",
            .label = "instance-properties: {prop1: foo}",
            .image = "diskimage: debian"});
  std::string upload = AddUpload("debian");
  StartLauncher();
  RequestId id = Request({"small"}, [](NodeRequest& request) {
    request.tenant_name = "tenant-1";
    request.requestor = "unit-test";
  });
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  Node node = NodeOf(id);
  EXPECT_EQ(node.state, NodeState::kReady);
  EXPECT_EQ(node.allocated_to, id);
  EXPECT_THAT(node.launcher.value_or(""), ::testing::StartsWith("np01.example.org-PoolWorker.cloud-main-"));
  EXPECT_EQ(node.cloud, "simulated");
  EXPECT_EQ(node.region, "north");
  EXPECT_EQ(node.az, "az1");
  EXPECT_EQ(node.username, "builder");
  EXPECT_EQ(node.python_path, "/usr/bin/python3");
  EXPECT_EQ(node.shell_type, std::nullopt);
  EXPECT_EQ(node.connection_type, "ssh");
  EXPECT_EQ(node.connection_port, 22);
  EXPECT_EQ(node.tenant_name, "tenant-1");
  EXPECT_EQ(node.requestor, "unit-test");
  EXPECT_EQ(node.image_id, upload);
  EXPECT_EQ(node.resources, (Resources{{"cores", 4}, {"instances", 1}, {"ram", 8192}}));
  ASSERT_EQ(cloud().servers().size(), 1u);
  const drivers::FakeServer& server = cloud().servers().begin()->second;
  EXPECT_EQ(node.external_id, boost::json::value(server.id));
  EXPECT_EQ(server.name, "np" + Read(id)->nodes[0].value);
  EXPECT_EQ(server.metadata, (Metadata{{"nodepool_node_id", Read(id)->nodes[0].value},
                                       {"nodepool_pool_name", "main"},
                                       {"nodepool_provider_name", "cloud"},
                                       {"prop1", "foo"}}));
  EXPECT_TRUE(time_.Run(client_store_->nodes.TryLock(Read(id)->nodes[0]))) << "a client can lock it";
  DeleteRequest(id);
  EXPECT_TRUE(Await([&] { return Children("/nodepool/requests-lock").empty(); }));
}

TEST_F(NodeRecordTest, AttributesOfThePoolAndKeysOfTheMachine) {  // LA-26
  AddCloud({.pool = "node-attributes: {executor-zone: north, level: 2}"});
  StartLauncher();
  Node node = Launch();
  EXPECT_THAT(node.type, ElementsAre(LabelName("small")));
  EXPECT_THAT(node.host_keys, ElementsAre("ssh-rsa FAKEKEY"));
  EXPECT_EQ(node.attributes, (boost::json::object{{"executor-zone", "north"}, {"level", 2}}));
}

TEST_F(NodeRecordTest, NetworkCliHasHostKeysToo) {  // LA-28
  AddCloud({.pool = "node-attributes: {executor-zone: north}",
            .image = "cloud-image: switch",
            .more_images = ", {name: switch, image-name: Fake Precise, connection-type: network_cli}"});
  StartLauncher();
  Node node = Launch();
  EXPECT_EQ(node.connection_type, "network_cli");
  EXPECT_THAT(node.host_keys, ElementsAre("ssh-rsa FAKEKEY"));
  EXPECT_FALSE(node.attributes.is_null());
}

TEST_F(NodeRecordTest, HostKeyCheckingOfThePoolAndOfTheLabel) {  // LA-29
  AddCloud({.name = "a", .labels = {"small"}, .pool = "host-key-checking: false"});
  AddCloud({.name = "b", .labels = {"large"}, .label = "host-key-checking: false"});
  StartLauncher();
  EXPECT_THAT(Launch("small").host_keys, IsEmpty());
  EXPECT_THAT(Launch("large").host_keys, IsEmpty());
}

TEST_F(NodeRecordTest, VolumesAreAmongTheResources) {  // LA-34
  AddCloud({.label = "boot-from-volume: true, volume-size: 10"});
  StartLauncher();
  EXPECT_EQ(Launch().resources,
            (Resources{{"cores", 4}, {"instances", 1}, {"ram", 8192}, {"volumes", 1}, {"volume-gb", 10}}));
}

TEST_F(NodeRecordTest, AddressesFollowTheNetworks) {  // LA-36, LA-43
  AddCloud({.pool = "networks: [fake-private-network-name]"});
  AddCloud({.name = "six", .labels = {"six"}, .label = "networks: [fake-ipv6-network-name]"});
  StartLauncher();
  Node four = Launch();
  EXPECT_EQ(four.public_ipv4, "fake");
  EXPECT_THAT(four.public_ipv6.value_or(""), IsEmpty());
  EXPECT_EQ(four.interface_ip, "fake");
  EXPECT_EQ(four.host_id, "fake");
  Node six = Launch("six");
  EXPECT_EQ(six.public_ipv6, "fake_v6");
  EXPECT_EQ(six.interface_ip, "fake_v6");
  EXPECT_EQ(six.host_id, "fake_host_id");
}

TEST_F(NodeRecordTest, FlavorByNameAlone) {  // LA-38
  AddProvider("cloud", "small", "{name: small, cloud-image: image, flavor-name: Fake Flavor}");
  StartLauncher();
  EXPECT_EQ(Launch().state, NodeState::kReady);
}

TEST_F(NodeRecordTest, PoolsHaveTheirOwnZonesLabelsAndLimits) {  // LA-65
  AddCloud({.labels = {"small"},
            .pool = "max-servers: 1, availability-zones: [az1]",
            .more_pools =
                ", {name: second, max-servers: 1, availability-zones: [az2], labels: [{name: large, "
                "cloud-image: image, min-ram: 8192}]}"});
  SetLabel("small", "min-ready: 1");
  SetLabel("large", "min-ready: 1");
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 2; }));
  std::map<std::string, std::string> place;
  for (const NodeId& id : Nodes()) {
    Node node = *Read(id);
    place[node.type.at(0).value] = node.pool.value + " " + node.az.value_or("");
  }
  EXPECT_EQ(place, (std::map<std::string, std::string>{{"small", "main az1"}, {"large", "second az2"}}));
}

TEST_F(NodeRecordTest, CloudImagesSayHowToLogIn) {  // LA-66
  AddProvider("cloud", "linux", "{name: linux, cloud-image: linux, min-ram: 8192}",
              "{name: linux, python-path: /usr/bin/python3, shell-type: csh}");
  AddProvider("windows", "windows", "{name: windows, cloud-image: windows, min-ram: 8192}",
              "{name: windows, username: zuul, connection-type: winrm}");
  AddProvider("other", "other", "{name: other, cloud-image: other, min-ram: 8192}",
              "{name: other, username: zuul, connection-type: winrm, connection-port: 1234}");
  for (const char* label : {"linux", "windows", "other"}) SetLabel(label, "min-ready: 1");
  StartLauncher();
  time_.Advance(std::chrono::minutes(3));
  EXPECT_THAT(Nodes(), IsEmpty()) << "the images do not exist yet";
  for (const char* provider : {"cloud", "windows", "other"}) {
    Change([](drivers::FakeSimulation& cloud) { cloud.images = {"linux", "windows", "other"}; }, provider);
  }
  ASSERT_TRUE(Await([&] { return FreeNodes() == 3; })) << "noticed without any other event";
  Node linux_node = Launch("linux");
  EXPECT_EQ(linux_node.username, std::nullopt);
  EXPECT_EQ(linux_node.python_path, "/usr/bin/python3");
  EXPECT_EQ(linux_node.shell_type, "csh");
  Node windows_node = Launch("windows");
  EXPECT_EQ(windows_node.username, "zuul");
  EXPECT_EQ(windows_node.connection_type, "winrm");
  EXPECT_EQ(windows_node.connection_port, 5986);
  EXPECT_THAT(windows_node.host_keys, IsEmpty());
  EXPECT_EQ(windows_node.python_path, "auto");
  EXPECT_EQ(windows_node.shell_type, std::nullopt);
  EXPECT_EQ(Launch("other").connection_port, 1234);
}

TEST_F(NodeRecordTest, CloudImageByNameOrById) {  // LA-67, LA-68
  AddProvider("cloud", "small", "{name: small, cloud-image: debian, min-ram: 8192}",
              "{name: debian, image-name: Debian 12}");
  AddProvider("by-id", "large", "{name: large, cloud-image: debian, min-ram: 8192}",
              "{name: debian, image-id: 0b1c}", "images: [0b1c]");
  StartLauncher();
  EXPECT_EQ(Launch("large").image_id, "debian");
  RequestId early = Request({"small"});
  ASSERT_TRUE(AwaitState(early, RequestState::kFailed)) << "no such image yet";
  Change([](drivers::FakeSimulation& cloud) { cloud.images = {"Debian 12"}; });
  EXPECT_EQ(Launch("small").image_id, "debian");
}

TEST_F(NodeRecordTest, ProviderWithoutTheUploadIsPassedOver) {  // LA-41
  top_ = kDiskImages;
  AddCloud({.name = "a", .provider = "diskimages: [{name: debian}]", .image = "diskimage: debian"});
  AddCloud({.name = "b", .provider = "diskimages: [{name: debian}]", .image = "diskimage: debian"});
  SetLabel("small", "min-ready: 2");
  AddUpload("debian", "b");
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 2; }));
  time_.Advance(std::chrono::minutes(5));
  EXPECT_EQ(Nodes().size(), 2u);
  EXPECT_EQ(cloud("b").servers().size(), 2u);
}

}  // namespace
}  // namespace nodepool::launcher
