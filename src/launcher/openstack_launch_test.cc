// Nodes, and which pool serves which request, with the OpenStack driver (driver-openstack.md 21).
#include "launcher/openstack_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kTwoLabels =
    "labels: [{name: small, cloud-image: image, flavor-name: m1.small}, "
    "{name: large, cloud-image: image, flavor-name: m1.large}]";

class OpenstackLaunchTest : public OpenstackCloudTest {
 protected:
  Provider For(std::string name, std::string label, std::string image = "image-name: debian") {
    return {.name = std::move(name),
            .pool = "labels: [{name: " + std::move(label) + ", cloud-image: image, min-ram: 1}]",
            .image = std::move(image)};
  }
  RequestId RequestFrom(const std::string& provider, std::string label) {
    return Request({std::move(label)},
                   [&provider](NodeRequest& request) { request.provider = ProviderName(provider); });
  }
};

// O-order
TEST_F(OpenstackLaunchTest, NodesAreInTheOrderOfTheLabels) {
  Add({.pool = kTwoLabels});
  StartLauncher();
  RequestId id = Request({"large", "small", "large"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  std::vector<std::string> labels;
  std::vector<double> cores;
  for (const NodeId& node : NodesOf(id)) {
    labels.push_back(Read(node)->type.front().value);
    cores.push_back(Read(node)->resources->at("cores"));
  }
  EXPECT_THAT(labels, ElementsAre("large", "small", "large"));
  EXPECT_THAT(cores, ElementsAre(4, 1, 4));
}

// O-invalid-label
TEST_F(OpenstackLaunchTest, AnUnknownLabelFails) {
  StartLauncher();
  EXPECT_TRUE(AwaitState(Request({"unknown"}), RequestState::kFailed));
}

// O-node: from an image of the builder's, with host keys and attributes; LA-26
TEST_F(OpenstackLaunchTest, ANodeBootsFromAnUpload) {
  top_ = "diskimages: [{name: built, username: builder, metadata: {os_distro: any}}]";
  Add({.settings = "diskimages: [{name: built, meta: {os_distro: debian}, config-drive: true}]",
       .pool = "labels: [{name: small, diskimage: built, flavor-name: m1.small}], node-attributes: {zone: "
               "north}"});
  std::string image = imposter_.AddImage("built-1");
  std::string build = "/nodepool/images/built/builds/0123456789abcdef0123456789abcdef";
  std::string upload = build + "/providers/cloud/images/0000000001";
  ImageBuild ready;
  ready.state = ImageState::kReady;
  ready.state_time = time_.loop().Now();
  Put(build, ToJson(ready));
  ImageUpload uploaded;
  uploaded.state = ImageState::kReady;
  uploaded.state_time = time_.loop().Now();
  uploaded.external_id = image;
  Put(upload, ToJson(uploaded));
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  Node node = NodeOf(id);
  EXPECT_EQ(node.image_id, upload);
  EXPECT_EQ(node.username, "builder");
  EXPECT_THAT(node.host_keys, ElementsAre("ssh-ed25519 AAAA"));
  EXPECT_EQ(node.attributes, (boost::json::object{{"zone", "north"}}));
  EXPECT_EQ(Sent("imageRef"), boost::json::value(image));
  EXPECT_EQ(Sent("config_drive"), true);
}

// O-network-cli
TEST_F(OpenstackLaunchTest, NetworkCliNodesHaveHostKeysAndAttributes) {
  Add({.pool = Provider().pool + ", node-attributes: {executor-zone: south}",
       .image = "image-name: debian, connection-type: network_cli"});
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(id).connection_type, "network_cli");
  EXPECT_THAT(NodeOf(id).host_keys, SizeIs(1));
  EXPECT_EQ(NodeOf(id).attributes, (boost::json::object{{"executor-zone", "south"}}));
}

// O-unmanaged, O-unmanaged-by-name, O-unmanaged-by-id
TEST_F(OpenstackLaunchTest, ImagesOfTheCloudByTheirNameOrId) {
  std::string named = imposter_.AddImage("windows 2025");
  std::string by_id = imposter_.AddImage("whatever");
  Add(For("a", "small", "image-name: windows 2025, connection-type: winrm, shell-type: cmd"));
  Add(For("b", "large",
          "image-id: " + by_id +
              ", username: admin, python-path: /usr/bin/python3, "
              "connection-type: winrm, connection-port: 1234"));
  StartLauncher();
  RequestId first = Request({"small"});
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  EXPECT_EQ(Sent("imageRef"), boost::json::value(named));
  Node node = NodeOf(first);
  EXPECT_EQ(node.username, std::nullopt);
  EXPECT_EQ(node.python_path, "auto");
  EXPECT_EQ(node.shell_type, "cmd");
  EXPECT_EQ(node.connection_port, 5986);
  EXPECT_THAT(node.host_keys, IsEmpty());
  RequestId second = Request({"large"});
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_EQ(Sent("imageRef"), boost::json::value(by_id));
  EXPECT_EQ(NodeOf(second).username, "admin");
  EXPECT_EQ(NodeOf(second).python_path, "/usr/bin/python3");
  EXPECT_EQ(NodeOf(second).connection_port, 1234);
}

// O-no-hostkeys
TEST_F(OpenstackLaunchTest, WithoutCheckingThereAreNoHostKeys) {
  Add({.pool = "labels: [{name: small, cloud-image: image, min-ram: 1, host-key-checking: false}]",
       .more_pools = ", {name: second, auto-floating-ip: false, host-key-checking: false, "
                     "labels: [{name: large, cloud-image: image, min-ram: 1}]}"});
  StartLauncher();
  for (const char* label : {"small", "large"}) {
    RequestId id = Request({label});
    ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
    EXPECT_THAT(NodeOf(id).host_keys, IsEmpty());
  }
  EXPECT_EQ(scans_, 0);
}

// O-keyscan-retry
TEST_F(OpenstackLaunchTest, AKeyScanThatFailsIsAnAttempt) {
  StartLauncher();
  failing_scans_ = 1;
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled));
  EXPECT_EQ(Attempts(), 2);
  EXPECT_TRUE(Await([&] { return imposter_.servers.size() == 1; }));
}

// O-keyscan-exhaust, O-keyscan-console
TEST_F(OpenstackLaunchTest, KeyScansThatFailInEveryAttemptFailTheRequest) {
  Add({.pool = "labels: [{name: small, cloud-image: image, min-ram: 1, console-log: true}]"});
  StartLauncher();
  failing_scans_ = 4;
  log::Capture capture;
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
  EXPECT_EQ(Attempts(), 3);
  EXPECT_EQ(capture.Count("console line 1"), 3);
  EXPECT_EQ(capture.Count("console line 2"), 3);
  EXPECT_EQ(imposter_.Counts()["POST /compute/v2.1/servers/ID/action"], 3);
}

// O-provider-wish, O-provider-missing, O-provider-label-mismatch
TEST_F(OpenstackLaunchTest, ARequestedProviderServesWhereItCan) {
  Add(For("a", "small"));
  Add(For("b", "small"));
  Add(For("c", "large"));
  StartLauncher();
  for (const char* provider : {"b", "a", "b"}) {
    RequestId id = RequestFrom(provider, "small");
    ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
    EXPECT_EQ(NodeOf(id).provider.value, provider);
  }
  EXPECT_TRUE(AwaitState(RequestFrom("nowhere", "small"), RequestState::kFulfilled));
  EXPECT_TRUE(AwaitState(RequestFrom("c", "small"), RequestState::kFulfilled));
}

// O-az, O-multi-pool
TEST_F(OpenstackLaunchTest, EachPoolUsesItsOwnZone) {
  imposter_.zones = {"az1", "az2", "az3"};
  Add({.pool = Provider().pool + ", availability-zones: [az2]",
       .more_pools = ", {name: second, auto-floating-ip: false, availability-zones: [az3], "
                     "labels: [{name: large, cloud-image: image, min-ram: 1}]}"});
  StartLauncher();
  for (const auto& [label, pool, zone] :
       {std::tuple{"small", "main", "az2"}, std::tuple{"large", "second", "az3"}}) {
    for (int i = 0; i < 3; ++i) {
      RequestId id = Request({label});
      ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
      EXPECT_EQ(NodeOf(id).pool.value, pool);
      EXPECT_EQ(NodeOf(id).az, zone);
      EXPECT_EQ(Sent("availability_zone"), boost::json::value(zone));
    }
  }
}

// O-az-change: the zone of a request stays the same for all its attempts.
TEST_F(OpenstackLaunchTest, ZonesThatWereRenamedAreFollowed) {
  StartLauncher();
  ASSERT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled));
  imposter_.zones = {"new"};
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(id).az, "new");
}

// O-fail-with-id: the servers of failed attempts are known and deleted.
TEST_F(OpenstackLaunchTest, ServersOfFailedAttemptsBlockNothing) {
  Add({.settings = "launch-retries: 2"});
  StartLauncher();
  imposter_.next_server_becomes = "ERROR";
  std::set<std::string> ids;
  Subscription watch = WatchNodes([&](const NodeId&, const Node& record) {
    if (record.external_id.is_string()) ids.emplace(record.external_id.as_string());
  });
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
  EXPECT_EQ(Attempts(), 2);
  EXPECT_THAT(ids, SizeIs(2)) << "each stood in the record";
  imposter_.next_server_becomes = "ACTIVE";
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled));
  EXPECT_TRUE(Await([&] { return imposter_.servers.size() == 1 && Nodes().size() == 1; }));
}

// O-delete-error: a server that the cloud cannot delete stays visible in its node's record.
TEST_F(OpenstackLaunchTest, AServerThatEndsInErrorStaysInItsRecord) {
  small_ = "min-ready: 1";
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  auto nodes = Use({"small"});
  NodeId id = nodes.front().id();
  imposter_.failing_deletes = 1'000'000;
  Return(nodes);
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1 && NodesIn(NodeState::kDeleting).size() == 1; }));
  time_.Advance(minutes(5));
  EXPECT_EQ(Read(id)->state, NodeState::kDeleting);
  std::string server(Read(id)->external_id.as_string());
  EXPECT_EQ(imposter_.servers.at(server).record.at("status"), "ERROR");
  EXPECT_THAT(imposter_.servers, SizeIs(2)) << "there is another one for min-ready";
  imposter_.failing_deletes = 0;
  EXPECT_TRUE(Await([&] { return !Read(id); }));
}

// O-broken-znodes
TEST_F(OpenstackLaunchTest, NodesWithoutTypeOrPoolBlockNothing) {
  AddNode(NodeState::kReady, [](Node& node) { node.type.clear(); });
  AddNode(NodeState::kReady, [](Node& node) { node.pool = PoolName(); });
  StartLauncher();
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled));
}

// O-session-lost-launch, O-session-lost-poll: the launch is given up, its node and server are deleted; the
// request is served in the next session.
TEST_F(OpenstackLaunchTest, ALostSessionLeavesNothingBehind) {
  imposter_.next_lists_until_active = 20;
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return imposter_.servers.size() == 1; }));
  std::string abandoned = imposter_.servers.begin()->first;
  imposter_.next_lists_until_active = 1;
  zk_.ExpireSession(*running.client);
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled, minutes(5)));
  EXPECT_TRUE(Await([&] { return Nodes().size() == 1 && imposter_.servers.size() == 1; }, minutes(5)));
  EXPECT_FALSE(imposter_.servers.contains(abandoned));
  EXPECT_EQ(Attempts(), 2);
}

// drivers.md 5.16
TEST_F(OpenstackLaunchTest, AFreeNodeWhoseServerIsGoneIsReplaced) {
  small_ = "min-ready: 1";
  StartLauncher();
  ASSERT_TRUE(Await([&] { return NodesIn(NodeState::kReady).size() == 1; }));
  NodeId node = NodesIn(NodeState::kReady).front();
  imposter_.servers.clear();
  EXPECT_TRUE(Await([&] { return !Read(node); }, minutes(4))) << "found by two checks";
  ASSERT_TRUE(Await([&] { return NodesIn(NodeState::kReady).size() == 1; }, minutes(2)));
  EXPECT_THAT(imposter_.servers, SizeIs(1));
}

// O-broken-provider
TEST_F(OpenstackLaunchTest, AProviderWhoseImageIsMissingFailsOnlyItsOwnLabel) {
  Add(For("a", "large", "image-name: trixie"));
  Add(For("b", "small"));
  StartLauncher();
  EXPECT_TRUE(AwaitState(Request({"large"}), RequestState::kFailed));
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled));
}

// O-broken-provider: a request is served from an image that was created a while ago.
TEST_F(OpenstackLaunchTest, NoRequestIsDeclinedForAnImageThatExistsByNow) {
  Add(For("cloud", "small", "image-name: trixie"));
  StartLauncher();
  time_.Advance(minutes(10));
  imposter_.AddImage("trixie");
  time_.Advance(seconds(6));
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_THAT(Read(id)->declined_by, IsEmpty());
}

// O-reg-change
TEST_F(OpenstackLaunchTest, AnAddedLabelIsAnnouncedAndServed) {
  Running& running = StartLauncher();
  ASSERT_THAT(Pools(), SizeIs(1));
  EXPECT_THAT(Pools()[0].supported_labels, ElementsAre(LabelName("small")));
  Reconfigure(running, {{.pool = kTwoLabels}});
  EXPECT_THAT(Pools()[0].supported_labels, ElementsAre(LabelName("large"), LabelName("small")));
  EXPECT_TRUE(AwaitState(Request({"large"}), RequestState::kFulfilled));
}

// O-provider-removal
TEST_F(OpenstackLaunchTest, ARemovedProviderVanishesWithItsPool) {
  Add(For("a", "small"));
  Add(For("b", "large"));
  Running& running = StartLauncher();
  EXPECT_THAT(Pools(), SizeIs(2));
  Reconfigure(running, {For("b", "large")});
  ASSERT_THAT(Pools(), SizeIs(1));
  EXPECT_EQ(Pools()[0].provider_name.value, "b");
  EXPECT_TRUE(AwaitState(Request({"large"}), RequestState::kFulfilled));
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFailed));
}

}  // namespace
}  // namespace nodepool::launcher
