// Static hosts that several launchers serve, one of which registers them without a lock.
#include <cstdlib>

#include "base/testing/often.h"
#include "drivers/static/static_driver.h"
#include "launcher/launcher_fixture_for_test.h"
#include "launcher/unlocked_peer_for_test.h"

namespace nodepool::launcher {
namespace {

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
    if (node && node->record().allocated_to == id) co_await Use(*node);
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
    return fmt::format("{} uses, {} offered twice, {} used twice, {} resets of requests", uses_,
                       offered_twice_, used_twice_, resets_);
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
