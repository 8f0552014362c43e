#include <cstdlib>

#include "base/testing/test_environment.h"
#include "drivers/fake/fake_driver.h"
#include "drivers/static/static_driver.h"
#include "launcher/launcher_fixture_for_test.h"
#include "launcher/unlocked_peer_for_test.h"

namespace nodepool::launcher {

// Requests for hosts that exist already: the whole launcher with the static driver.

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

// Static hosts that several launchers serve, one of which registers them without a lock.

using std::chrono::milliseconds;
using std::chrono::seconds;

// 5000 and more take hours.
int Uses() {
  const char* uses = std::getenv("NODEPOOL_STATIC_USES");
  return uses == nullptr ? testing::Often(300, 20) : std::atoi(uses);
}

class SharedStaticHostsTest : public LauncherFixture {
 protected:
  static constexpr int kConsumers = 8;

  void SetUp() override {
    LauncherFixture::SetUp();
    zk_.SetLatency(milliseconds(4));
    drivers::HostContact contact{
        [this](std::string host, int, bool, SteadyTime) { return Scan(std::move(host)); },
        [](std::string name) { return Resolve(std::move(name)); }};
    drivers_.Add(std::make_unique<drivers::StaticDriver>(contact));
    std::string nodes;
    for (const auto& [host, slots] : settings_.hosts)
      nodes += fmt::format("{{name: {}, labels: red, max-parallel-jobs: {}}},", host, slots);
    LoadYaml(
        "labels: [{name: red}]\nproviders:\n- {name: metal, driver: static, pools: [{name: main, nodes: [" +
        nodes + "]}]}\n");
  }
  void TearDown() override {
    is_over_ = true;
    EXPECT_TRUE(Await([this] { return consumers_.size() == 0; }));
    StopPeer();
    LauncherFixture::TearDown();
  }

  Task<std::vector<std::string>> Scan(std::string host) {
    co_await time_.loop().SleepFor(milliseconds(40 + random_.Below(360)));
    co_return std::vector<std::string>{"ssh-ed25519 KEY-OF-" + host};
  }
  static Task<boost::asio::ip::address> Resolve(std::string) {
    co_return boost::asio::ip::make_address("192.0.2.1");
  }

  void StartPeer() {
    peer_ = std::make_unique<UnlockedPeer>(time_.loop(), zk_, ++peers_, settings_);
    peer_->Start();
  }
  void StopPeer() {
    if (peer_) time_.Run(peer_->Stop());
    peer_.reset();
  }

  // Lets consumers use nodes until so many were used; calls `disturb` every 20 s.
  void UseHosts(
      int uses, std::function<void()> disturb = [] {}) {
    for (int i = 0; i < kConsumers; ++i) consumers_.Spawn("consumer", KeepUsing());
    while (uses_ < uses) {
      int before = uses_;
      for (int i = 0; i < 3; ++i) {
        time_.Advance(seconds(20));
        disturb();
      }
      ASSERT_GT(uses_, before) << "nothing is served any more";
    }
    RecordProperty("resets", resets_);
  }
  Task<> KeepUsing() {
    while (!is_over_) co_await UseOne();
  }
  Task<> UseOne() {
    NodeRequest request;
    request.SetState(RequestState::kRequested, time_.loop().Now());
    request.node_types = {LabelName("red")};
    RequestId id = co_await client_store_->requests.Create("200", std::move(request), false);
    std::optional<store::StoredRequest> answer;
    do {
      co_await time_.loop().SleepFor(milliseconds(200));
      answer = co_await client_store_->requests.Read(id);
      if (is_over_) co_return co_await client_store_->requests.Delete(id);
    } while (answer->record.state != RequestState::kFulfilled);
    NodeId node_id = answer->record.nodes.at(0);
    SteadyTime deadline = time_.loop().SteadyNow() + seconds(10);
    std::optional<store::LockedNode> node = co_await client_store_->nodes.Lock(node_id, deadline);
    co_await client_store_->requests.Delete(id);
    bool is_ours = node && node->record().allocated_to == id;
    if (!is_ours) ++taken_away_;
    if (is_ours) co_await Use(*node);
    if (node) co_await node->Unlock();
  }
  Task<> Use(store::LockedNode& node) {
    std::string host = node.record().hostname.value_or("");
    ++uses_;
    if (++in_use_[host] > settings_.hosts.at(host)) ++used_twice_;
    co_await SetStateOf(node, NodeState::kInUse);
    co_await time_.loop().SleepFor(milliseconds(500 + random_.Below(3000)));
    --in_use_[host];
    co_await SetStateOf(node, NodeState::kUsed);
  }
  // As a program that asks nobody.
  Task<> HoldUnlocked(NodeId id) {
    auto hold = [this](Node& record) {
      record.SetState(NodeState::kHold, time_.loop().Now());
      record.allocated_to = RequestId("another");
      return Change::kWrite;
    };
    co_await client_store_->nodes.UpdateUnlocked(std::move(id), hold);
  }
  Task<> SetStateOf(store::LockedNode& node, NodeState state) {
    auto change = [state, now = time_.loop().Now()](Node& record) {
      record.SetState(state, now);
      return Change::kWrite;
    };
    co_await node.Update(change);
  }
  // From now on, counts hosts that are offered twice and requests that are given back.
  void Watch() {
    node_watch_ = WatchNodes([this](const NodeId&, const Node& node) {
      if (!node.is_free()) return;
      int free = 0;
      for (const auto& [id, other] : watched_nodes_->all()) {
        bool is_offered = other.record.is_free() || other.record.state == NodeState::kInUse;
        if (is_offered && other.record.hostname == node.hostname) ++free;
      }
      if (free > settings_.hosts.at(*node.hostname)) ++offered_twice_;
    });
    request_watch_ = WatchRequests([this](const RequestId& id, const store::StoredRequest& request) {
      if (request.record.state == RequestState::kPending) pending_.insert(id);
      if (request.record.state == RequestState::kRequested) resets_ += static_cast<int>(pending_.erase(id));
    });
  }
  std::string Tally() const {
    return fmt::format("{} uses, {} offered twice, {} used twice, {} taken away, {} resets of requests",
                       uses_, offered_twice_, used_twice_, taken_away_, resets_);
  }

  UnlockedPeer::Settings settings_{.provider = ProviderName("metal"),
                                   .pool = PoolName("main"),
                                   .hosts = {{"h1", 1}, {"h2", 1}, {"h3", 1}, {"h4", 2}},
                                   .label = LabelName("red")};
  std::unique_ptr<UnlockedPeer> peer_;
  std::uint64_t peers_ = 0;
  TaskGroup consumers_{time_.loop(), log::Logger("consumers")};
  bool is_over_ = false;
  std::map<std::string, int> in_use_;
  std::set<RequestId> pending_;
  Subscription node_watch_;
  Subscription request_watch_;
  int uses_ = 0;
  int used_twice_ = 0;
  int taken_away_ = 0;  // nodes of fulfilled requests that belong to another when their clients lock them
  int offered_twice_ = 0;
  int resets_ = 0;
};

// D-85, D-25
TEST_F(SharedStaticHostsTest, ThreeOfOurs) {
  for (std::string name : {"np01", "np02", "np03"}) StartLauncher(name);
  Watch();
  UseHosts(Uses());
  SCOPED_TRACE(Tally());
  EXPECT_EQ(used_twice_, 0);
  EXPECT_EQ(offered_twice_, 0);
  EXPECT_LE(resets_, uses_ / 20);
}

// D-85
TEST_F(SharedStaticHostsTest, BesideOneThatTakesNoLock) {
  StartPeer();
  for (std::string name : {"np01", "np02"}) StartLauncher(name);
  Watch();
  UseHosts(Uses());
  SCOPED_TRACE(Tally());
  EXPECT_EQ(used_twice_, 0);
  EXPECT_EQ(offered_twice_, 0);
}

// The launchers that register beside one without locks lose an answer, or a call, again and again: each time
// the others have a moment to act on what is half done.
class InterleavedRegistrationTest : public SharedStaticHostsTest,
                                    public ::testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  void SetUp() override {
    settings_.hosts = {{"h1", 1}, {"h2", 2}};
    SharedStaticHostsTest::SetUp();
  }
  // Every so many writes, one fails.
  void FailSome(Running& launcher, int moment, bool is_carried_out) {
    using Fault = testing::FaultyZk::Fault;
    auto rule = [this, moment, is_carried_out](const testing::FaultyZk::Call& call) {
      if (!call.is_write || writes_++ % kMoments != moment) return Fault::kNone;
      return is_carried_out ? Fault::kAfter : Fault::kBefore;
    };
    launcher.recorder->FailWhen(rule);
  }

  static constexpr int kMoments = 7;  // no divisor of the writes of a use
  int writes_ = 0;
};

// D-85
TEST_P(InterleavedRegistrationTest, NoNodeIsHandedOutTwice) {
  auto [moment, is_carried_out] = GetParam();
  AddForeignPool([](Component& pool) { pool.provider_name = ProviderName("metal"); });
  for (std::string name : {"np01", "np02"}) FailSome(StartLauncher(name), moment, is_carried_out);
  Watch();
  UseHosts(30);
  SCOPED_TRACE(Tally());
  EXPECT_EQ(used_twice_, 0);
  EXPECT_EQ(offered_twice_, 0);
  EXPECT_EQ(taken_away_, 0);
}

INSTANTIATE_TEST_SUITE_P(Writes, InterleavedRegistrationTest,
                         ::testing::Combine(::testing::Range(0, 7), ::testing::Bool()), [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "CarriedOut" : "Lost");
                         });

// D-85
TEST_F(SharedStaticHostsTest, WhatWasWrittenDuringTheRegistrationStays) {
  AddForeignPool([](Component& pool) { pool.provider_name = ProviderName("metal"); });
  bool is_held = false;
  Watch();
  Subscription watch = WatchNodes([&](const NodeId& id, const Node& node) {
    if (node.state != NodeState::kReady || node.allocated_to.empty() || std::exchange(is_held, true)) return;
    consumers_.Spawn("hold", HoldUnlocked(id));
  });
  StartLauncher("np01");
  ASSERT_TRUE(Await([&] { return !NodesIn(NodeState::kHold).empty(); }));
  time_.Advance(seconds(30));
  std::vector<NodeId> held = NodesIn(NodeState::kHold);
  ASSERT_EQ(held.size(), 1u) << "no record is removed that says something else";
  EXPECT_EQ(Read(held.front())->allocated_to, RequestId("another")) << "nor is one freed";
}

// D-85
TEST_F(SharedStaticHostsTest, BesideOneThatTakesNoLockWhileAnyMayBeKilled) {
  StartPeer();
  for (std::string name : {"np01", "np02"}) StartLauncher(name);
  Watch();
  UseHosts(Uses(), [this] {
    switch (random_.Below(4)) {
      case 0:
        StopPeer();
        return StartPeer();
      case 1: {
        Running& victim = *launchers_.at(random_.Below(2));
        Kill(victim);
        StopLauncher(victim);
        launchers_.erase(std::ranges::find(launchers_, &victim, &std::unique_ptr<Running>::get));
        StartLauncher("np" + std::to_string(++peers_));
        return;
      }
      default:
        return;
    }
  });
  SCOPED_TRACE(Tally());
  EXPECT_EQ(used_twice_, 0);
}

}  // namespace

}  // namespace nodepool::launcher
