#include "launcher/cloud_fixture_for_test.h"
#include "model/image.h"

namespace nodepool::launcher {

// What is in a node's record, and in the cloud, after a launch (launcher.md 17).

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

using std::chrono::seconds;

class ReuseTest : public LauncherTest {
 protected:
  NodeId MakeFreeNode() {
    RequestId id = Request({"small"});
    EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
    NodeId node = Read(id)->nodes.at(0);
    DeleteRequest(id);
    EXPECT_TRUE(Await([&] { return Read(node)->is_free(); }));
    return node;
  }
};

TEST_F(ReuseTest, FulfilledRequestWithoutConsumerLeavesAFreeNode) {  // BB-08
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  NodeId node = Read(id)->nodes[0];
  DeleteRequest(id);
  EXPECT_TRUE(Await([&] { return Read(node)->is_free(); }, seconds(1)));
  EXPECT_FALSE(IsLocked(node));
}

TEST_F(ReuseTest, ReadyNodeOfAnUnknownRequestBecomesFree) {  // LA-64, coordination.17.19
  StartLauncher();
  NodeId node =
      AddNode(NodeState::kReady, [](Node& record) { record.allocated_to = RequestId("100-0000000123"); });
  EXPECT_TRUE(Await([&] { return Read(node)->is_free(); }, seconds(1)));
}

// D-04: the last client would take its own keys beside our fields as a sign that the node is still its own.
TEST_F(ReuseTest, UnknownKeysStayAsLongAsTheNodeIsAllocated) {
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  NodeId node = Read(id)->nodes.at(0);
  ChangeNode(node, [](Node& record) { record.foreign.Add("build_id", "b-17"); });
  EXPECT_EQ(Read(node)->foreign.unknown, R"("build_id": "b-17")");
  DeleteRequest(id);
  ASSERT_TRUE(Await([&] { return Read(node)->is_free(); }));
  EXPECT_EQ(Read(node)->foreign.unknown, "");
}

TEST_F(ReuseTest, ReusesAFreeNodeUnlessReuseIsOff) {  // coordination.17.9, BB-10, BB-12
  StartLauncher();
  NodeId node = MakeFreeNode();
  Node before = *Read(node);
  time_.Advance(seconds(10));
  RequestId second = Request({"small"}, [](NodeRequest& request) {
    request.requestor = "other";
    request.tenant_name = "t2";
  });
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_EQ(Read(second)->nodes[0], node);
  EXPECT_EQ(Read(node)->requestor, "other");
  EXPECT_EQ(Read(node)->tenant_name, "t2");
  EXPECT_EQ(Read(node)->launcher, before.launcher);
  EXPECT_EQ(Read(node)->created_time, before.created_time);
  EXPECT_EQ(Read(node)->state_time, before.state_time);
  DeleteRequest(second);
  ASSERT_TRUE(Await([&] { return Read(node)->is_free(); }));
  RequestId third = Request({"small"}, [](NodeRequest& request) { request.reuse = false; });
  ASSERT_TRUE(AwaitState(third, RequestState::kFulfilled));
  EXPECT_NE(Read(third)->nodes[0], node);
}

TEST_F(ReuseTest, NodesOfOthersAreNotReused) {  // BB-11
  AddPool("cloud", "second", {"elsewhere"});
  StartLauncher();
  RequestId owner = Request({"small"});
  ASSERT_TRUE(AwaitState(owner, RequestState::kFulfilled));
  std::set<NodeId> taboo = {Read(owner)->nodes[0]};
  taboo.insert(AddNode(NodeState::kReady, [](Node& node) { node.pool = PoolName("second"); }));
  NodeId locked = AddNode(NodeState::kReady);
  taboo.insert(locked);
  auto lock = time_.Run(client_store_->nodes.TryLock(locked));
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_FALSE(taboo.contains(Read(id)->nodes[0]));
  time_.Run(lock->Unlock());
}

TEST_F(ReuseTest, RequestDeletedDuringLaunchLeavesAFreeNode) {  // BB-07, coordination.17.25
  script().launch_time = seconds(10);
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  DeleteRequest(id);
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  NodeId node = Nodes()[0];
  EXPECT_FALSE(IsLocked(node));
  RequestId next = Request({"small"});
  ASSERT_TRUE(AwaitState(next, RequestState::kFulfilled));
  EXPECT_EQ(Read(next)->nodes[0], node);
}

class ZoneTest : public CloudTest {
 protected:
  std::set<std::string> ZonesOf(const RequestId& id) {
    std::set<std::string> zones;
    for (const NodeId& node : NodesOf(id)) zones.insert(Read(node)->az.value_or("none"));
    return zones;
  }
};

TEST_F(ZoneTest, AllNodesOfARequestShareOneZone) {  // BB-02
  AddCloud({.simulation = "availability-zones: [az1, az2, az3]"});
  StartLauncher();
  std::set<std::string> seen;
  for (int i = 0; i < 10; ++i) {
    RequestId id = Request({"small", "small"}, [](NodeRequest& request) { request.reuse = false; });
    ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
    EXPECT_EQ(ZonesOf(id).size(), 1u);
    seen.merge(ZonesOf(id));
    auto nodes = Take(id);
    Return(nodes);
  }
  EXPECT_GT(seen.size(), 1u) << "not always the same one";
}

TEST_F(ZoneTest, FreeNodesOfAnotherZoneAreDeleted) {  // D-22
  AddCloud({.pool = "max-servers: 2"});
  for (const char* zone : {"az1", "az2"}) {
    AddNode(NodeState::kReady, [&](Node& node) {
      node.az = zone;
      node.resources = {{"instances", 1}};
    });
  }
  StartLauncher();
  RequestId id = Request({"small", "small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_THAT(ZonesOf(id), ::testing::SizeIs(1));
}

TEST_F(ZoneTest, ReusedNodeDecidesTheZoneOfTheOthers) {  // BB-13
  AddCloud({.labels = {"small", "large"}, .simulation = "availability-zones: [az1, az2, az3]"});
  StartLauncher();
  for (int i = 0; i < 10; ++i) {
    AddNode(NodeState::kReady, [](Node& node) { node.az = "az2"; });
    RequestId id = Request({"small", "large", "large"});
    ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
    EXPECT_THAT(ZonesOf(id), ::testing::ElementsAre("az2"));
    auto nodes = Take(id);
    Return(nodes);
    ASSERT_TRUE(Await([&] { return Nodes().empty(); }));
  }
}

TEST_F(ZoneTest, PoolMayNameItsZones) {  // LA-42
  AddCloud({.pool = "availability-zones: [az2]"});
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_THAT(ZonesOf(id), ::testing::ElementsAre("az2"));
}

TEST_F(ZoneTest, RenamedZonesAreFollowed) {  // LA-23
  AddCloud();
  StartLauncher();
  auto nodes = Use({"small"});
  Change([](drivers::FakeSimulation& cloud) { cloud.availability_zones = {"new"}; });
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_THAT(ZonesOf(id), ::testing::ElementsAre("new"));
}

using std::chrono::minutes;

// An upload of the image `debian` that is being validated, and a pool whose label `small` boots the image.
class ValidationNodesTest : public CloudTest {
 protected:
  void StartCloud() {
    top_ = "diskimages: [{name: debian, validate: true}]";
    AddCloud({.provider = "diskimages: [{name: debian}]", .image = "diskimage: debian"});
    upload_ = AddUpload("debian");
    SetUploadState(ImageState::kUploading);
    StartLauncher();
  }
  void SetUploadState(ImageState state) {
    ImageUpload upload = *ParseImageUpload(time_.Run(client_->Get(upload_))->data, time_.loop().Now());
    upload.state = state;
    time_.Run(client_->Set(upload_, ToJson(upload)));
  }
  RequestId RequestValidation() {
    std::string build = upload_.substr(upload_.find("builds/") + 7, 32);
    NodeRequest request = ValidationRequest(kLabel, ProviderName("cloud"),
                                            {BuildId(build), UploadId("0000000001")}, time_.loop().Now());
    return time_.Run(client_store_->requests.Create("200", std::move(request), false));
  }
  std::size_t NodeCount() { return time_.Run(client_store_->nodes.List()).size(); }

  const LabelName kLabel = ValidationLabel(LabelName("small"));
  std::string upload_;
};

// VAL-10
TEST_F(ValidationNodesTest, AnUploadThatNobodyMayUseYetIsBootedForItsBuilder) {
  StartCloud();
  RequestId others = Request({"small"});
  RequestId own = RequestValidation();
  ASSERT_TRUE(AwaitState(own, RequestState::kFulfilled));
  Node node = NodeOf(own);
  EXPECT_EQ(node.image_id.value_or(""), upload_);
  EXPECT_EQ(node.type, std::vector<LabelName>{kLabel});
  EXPECT_TRUE(AwaitState(others, RequestState::kFailed)) << "there is no ready upload";
  std::vector<store::LockedNode> taken = Take(own);
  Return(taken);
  EXPECT_TRUE(Await([&] { return NodeCount() == 0; }));
  EXPECT_TRUE(cloud().servers().empty());
}

// VAL-11
TEST_F(ValidationNodesTest, ItsNodeIsNotForOthers) {
  StartCloud();
  RequestId own = RequestValidation();
  ASSERT_TRUE(AwaitState(own, RequestState::kFulfilled));
  SetUploadState(ImageState::kReady);
  DeleteRequest(own);
  RequestId others = Request({"small"});
  ASSERT_TRUE(AwaitState(others, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(others).type, std::vector<LabelName>{LabelName("small")});
  EXPECT_EQ(cloud().created_count(), 2u);
  EXPECT_TRUE(Await([&] { return NodeCount() == 1; }, minutes(10))) << "the other one is deleted";
}

// VAL-11
TEST_F(ValidationNodesTest, WhatIsReadyWhenTheRequestVanishesIsDeleted) {
  StartCloud();
  Change([](drivers::FakeSimulation& settings) { settings.create_latency = seconds(30); });
  RequestId own = RequestValidation();
  ASSERT_TRUE(AwaitState(own, RequestState::kPending));
  DeleteRequest(own);
  EXPECT_TRUE(Await([&] { return NodeCount() == 0; }, minutes(10)));
  EXPECT_TRUE(cloud().servers().empty());
}

// VAL-12
TEST_F(ValidationNodesTest, WhatDoesNotBootOpensNoBreaker) {
  StartCloud();
  Change([](drivers::FakeSimulation& settings) { settings.create_failure_rate = 1; });
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(AwaitState(RequestValidation(), RequestState::kFailed, minutes(20)));
  EXPECT_FALSE(time_.Run(client_->Exists("/nodepool/breakers/cloud:main:" + kLabel.value)));
  EXPECT_GE(cloud().create_attempts(), 15u);
}

// VAL-13
TEST_F(ValidationNodesTest, WithoutTheSettingNobodyBootsIt) {
  AddCloud({.provider = "diskimages: [{name: debian}]", .image = "diskimage: debian"});
  top_ = "diskimages: [{name: debian}]";
  upload_ = AddUpload("debian");
  SetUploadState(ImageState::kUploading);
  StartLauncher();
  EXPECT_TRUE(AwaitState(RequestValidation(), RequestState::kFailed));
}

}  // namespace

}  // namespace nodepool::launcher
