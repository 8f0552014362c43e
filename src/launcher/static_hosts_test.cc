// Requests for hosts that exist already: the whole launcher with the static driver.
#include "drivers/fake/fake_driver.h"
#include "drivers/static/static_driver.h"
#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;

class StaticHostsTest : public LauncherFixture {
 protected:
  void SetUp() override {
    LauncherFixture::SetUp();
    drivers::HostContact contact{
        [this](std::string host, int, bool, SteadyTime deadline) { return Scan(std::move(host), deadline); },
        [](std::string name) { return Resolve(std::move(name)); }};
    drivers_.Add(std::make_unique<drivers::StaticDriver>(contact));
    drivers_.Add(std::make_unique<drivers::FakeDriver>());
  }
  Task<std::vector<std::string>> Scan(std::string host, SteadyTime deadline) {
    if (dead_.contains(host)) {
      co_await time_.loop().SleepUntil(deadline);
      throw Error(Verdict::kRetry, "no answer");
    }
    co_return std::vector<std::string>{"ssh-ed25519 KEY-OF-" + host};
  }
  static Task<boost::asio::ip::address> Resolve(std::string) {
    co_return boost::asio::ip::make_address("192.0.2.1");
  }

  // `hosts`: entries of `nodes` in YAML. Ends when all of them are registered.
  void Start(std::string hosts, std::vector<std::string> labels, std::string more_providers = "") {
    std::string text = "labels:\n";
    for (const std::string& label : labels) text += "- name: " + label + "\n";
    LoadYaml(text + "providers:\n- {name: metal, driver: static, pools: [{name: main, nodes: [" + hosts +
             "]}]}\n" + more_providers);
    StartLauncher();
    time_.Advance(seconds(5));
  }
  NodeId NodeOfHost(const std::string& host) {
    for (const NodeId& id : NodesIn(NodeState::kReady)) {
      if (Read(id)->hostname == host) return id;
    }
    return NodeId();
  }
  void ExpectWaits(const RequestId& id) {
    time_.Advance(seconds(30));
    EXPECT_EQ(Read(id)->state, RequestState::kRequested);
    EXPECT_THAT(Read(id)->declined_by, IsEmpty());
    EXPECT_THAT(Read(id)->nodes, IsEmpty());
  }

  std::set<std::string> dead_;
};

TEST_F(StaticHostsTest, RequestGetsTheRegisteredNodeWhichComesBack) {  // S-request-cycle
  Start("{name: h1, labels: red}", {"red"});
  ASSERT_EQ(Nodes().size(), 1u);
  NodeId id = Nodes()[0];
  auto nodes = Use({"red"});
  EXPECT_EQ(nodes.at(0).id(), id);
  Return(nodes);
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }, seconds(5)));
  EXPECT_NE(Nodes().at(0), id);
  EXPECT_EQ(Read(Nodes()[0])->slot, 0);
}

TEST_F(StaticHostsTest, SettingsOfTheHostSurviveItsUse) {  // S-python-path, S-shell-type
  Start("{name: h1, labels: red, python-path: /usr/bin/python3, shell-type: cmd}", {"red"});
  for (int i = 0; i < 2; ++i) {
    auto nodes = Use({"red"});
    EXPECT_EQ(nodes.at(0).record().python_path, "/usr/bin/python3");
    EXPECT_EQ(nodes.at(0).record().shell_type, "cmd");
    Return(nodes);
  }
}

TEST_F(StaticHostsTest, SharedLabelWaitsWhileEveryHostIsTaken) {  // OT-1, S-label-quota, D-25
  Start("{name: h1, labels: [a, shared]}, {name: h2, labels: [b, shared]}", {"a", "b", "shared"});
  RequestId a = Request({"a"});
  RequestId b = Request({"b"});
  RequestId shared = Request({"shared"});
  ASSERT_TRUE(AwaitState(a, RequestState::kFulfilled));
  ASSERT_TRUE(AwaitState(b, RequestState::kFulfilled));
  ExpectWaits(shared);
  auto nodes = Take(a);
  Return(nodes);
  EXPECT_TRUE(AwaitState(shared, RequestState::kFulfilled));
}

TEST_F(StaticHostsTest, WaitingRequestsAreServedInOrder) {  // OT-2, S-waiting-order
  Start("{name: h1, labels: red}", {"red"});
  auto nodes = Use({"red"});
  RequestId third = Request({"red"}, {}, "300");
  RequestId first = Request({"red"}, {}, "200");
  RequestId second = Request({"red"}, {}, "200");
  for (const RequestId& next : {first, second, third}) {
    Return(nodes);
    ASSERT_TRUE(AwaitState(next, RequestState::kFulfilled)) << next.value;
    for (const RequestId& other : {second, third}) {
      bool is_later = other > next && Read(other);
      EXPECT_TRUE(!is_later || Read(other)->state == RequestState::kRequested) << other.value;
    }
    nodes = Take(next);
  }
  Return(nodes);
}

TEST_F(StaticHostsTest, AllocatedNodeIsNeitherReassignedNorRegisteredTwice) {  // OT-3, S-assigned-untouched
  Start("{name: h1, labels: red}", {"red"});
  RequestId owner = Request({"red"});
  ASSERT_TRUE(AwaitState(owner, RequestState::kFulfilled));
  RequestId second = Request({"red"});
  time_.Advance(std::chrono::minutes(5));
  ExpectWaits(second);
  EXPECT_EQ(Nodes(), Read(owner)->nodes);
  EXPECT_EQ(NodeOf(owner).allocated_to, owner);
}

TEST_F(StaticHostsTest, BusyLabelHoldsUpNoOther) {  // S-waiting
  Start("{name: h1, labels: red}, {name: h2, labels: blue}", {"red", "blue"});
  auto nodes = Use({"red"});
  RequestId red = Request({"red"});
  RequestId blue = Request({"blue"});
  ASSERT_TRUE(AwaitState(blue, RequestState::kFulfilled));
  ExpectWaits(red);
  Return(nodes);
  EXPECT_TRUE(AwaitState(red, RequestState::kFulfilled));
}

TEST_F(StaticHostsTest, RequestOfTwoLabelsGetsTwoHosts) {  // S-multinode
  Start("{name: h1, labels: red}, {name: h2, labels: blue}", {"red", "blue"});
  auto nodes = Use({"blue", "red"});
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].record().hostname, "h2");
  EXPECT_EQ(nodes[1].record().hostname, "h1");
  Return(nodes);
}

TEST_F(StaticHostsTest, WorksBesideACloud) {  // S-multiprovider
  Start("{name: h1, labels: red}", {"red", "small"},
        "- {name: cloud, driver: fake, cloud: x, cloud-images: [{name: i, image-name: Fake Precise}], pools: "
        "[{name: main, labels: [{name: small, cloud-image: i, min-ram: 1}]}]}\n");
  RequestId metal = Request({"red"});
  RequestId cloud = Request({"small"});
  ASSERT_TRUE(AwaitState(metal, RequestState::kFulfilled));
  ASSERT_TRUE(AwaitState(cloud, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(metal).provider, ProviderName("metal"));
  EXPECT_EQ(NodeOf(cloud).provider, ProviderName("cloud"));
}

TEST_F(StaticHostsTest, DeadHostIsNotHandedOut) {  // S-liveness
  Start("{name: h1, labels: red}", {"red"});
  NodeId registered = NodeOfHost("h1");
  dead_ = {"h1"};
  RequestId id = Request({"red"});
  ASSERT_TRUE(Await([&] { return !Read(registered); }));
  time_.Advance(seconds(120));
  EXPECT_NE(Read(id)->state, RequestState::kFulfilled);
  EXPECT_THAT(Read(id)->declined_by, IsEmpty());
  dead_.clear();
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_NE(Read(id)->nodes[0], registered);
}

TEST_F(StaticHostsTest, DeadHostHoldsUpNoOtherLabel) {  // S-liveness-two
  Start("{name: h1, labels: red}, {name: h2, labels: blue}", {"red", "blue"});
  dead_ = {"h1"};
  RequestId red = Request({"red"});
  RequestId blue = Request({"blue"});
  ASSERT_TRUE(AwaitState(blue, RequestState::kFulfilled));
  ASSERT_TRUE(AwaitState(red, RequestState::kRequested));
  dead_.clear();
  EXPECT_TRUE(AwaitState(red, RequestState::kFulfilled));
}

TEST_F(StaticHostsTest, HeldHostIsNotHandedOut) {  // S-held
  Start("{name: h1, labels: red}", {"red"});
  ChangeNode(Nodes().at(0), [this](Node& node) { node.SetState(NodeState::kHold, time_.loop().Now()); });
  RequestId id = Request({"red"});
  ExpectWaits(id);
  ChangeNode(Nodes().at(0), [this](Node& node) { node.SetState(NodeState::kDeleting, time_.loop().Now()); });
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled)) << "given up, it is registered again";
}

TEST_F(StaticHostsTest, UnusedHostsAreNeverDeletedForCapacity) {  // D-22
  Start("{name: h1, labels: red}, {name: h2, labels: blue}", {"red", "blue"});
  auto nodes = Use({"red"});
  NodeId free = NodeOfHost("h2");
  RequestId id = Request({"red"});
  ExpectWaits(id);
  EXPECT_EQ(NodeOfHost("h2"), free);
  Return(nodes);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

}  // namespace
}  // namespace nodepool::launcher
