#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "base/metrics.h"
#include "driver/testing/scripted_driver.h"
#include "launcher/launcher.h"
#include "launcher/recorder_for_test.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::launcher {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MemoryZk;
using ::testing::Not;

// Launchers with a scripted cloud on a ZooKeeper in memory, in virtual time.
class StatsWorkerTest : public ::testing::Test {
 protected:
  struct Running {
    std::unique_ptr<zk::Client> client;
    Recorder recorder;
    metrics::Prometheus prometheus;
    std::unique_ptr<metrics::Metrics> metrics;
    std::unique_ptr<Launcher> launcher;
    bool is_stopped = false;
  };

  void SetUp() override {
    zk_ = std::make_unique<MemoryZk>(time_.loop());
    client_ = zk_->Connect();
    store_ = std::make_unique<store::Store>(time_.loop(), *client_, random_);
    auto label = std::make_shared<driver::LabelConfig>();
    label->name = LabelName("small");
    label->cloud_image = "image";
    auto pool = std::make_shared<driver::PoolConfig>();
    pool->name = PoolName("main");
    pool->max_servers = 3;
    pool->Offer(label);
    auto provider = std::make_shared<driver::ProviderConfig>();
    provider->name = ProviderName("cloud");
    provider->driver = "scripted";
    provider->pools[pool->name] = pool;
    config_->providers[provider->name] = provider;
    config_->common.labels.try_emplace(label->name, config::Label{label->name, 0, {}});
    pool_config_ = pool;
  }
  void TearDown() override {
    for (auto& running : launchers_) Stop(*running);
    time_.Run(client_->Close());
  }

  Running& Start(std::string hostname, bool has_statsd = true) {
    auto running = std::make_unique<Running>();
    running->client = zk_->Connect();
    running->metrics =
        std::make_unique<metrics::Metrics>(has_statsd ? &running->recorder : nullptr, &running->prometheus);
    Launcher::Options options{hostname, hostname + ".example.org", {}};
    running->launcher = std::make_unique<Launcher>(time_.loop(), random_, blocking_pool_, *running->metrics,
                                                   *running->client, drivers_, config_, std::move(options));
    time_.Run(running->launcher->Start());
    time_.Advance(milliseconds(100));
    launchers_.push_back(std::move(running));
    return *launchers_.back();
  }
  void Stop(Running& running) {
    if (std::exchange(running.is_stopped, true)) return;
    time_.Run(running.launcher->Stop());
    time_.Run(running.client->Close());
    time_.Run(running.launcher->Stop());
  }

  NodeId AddNode(NodeState state, std::string provider = "elsewhere", std::string label = "exotic") {
    Node node = MakeNode(state, std::move(provider), {LabelName(std::move(label))});
    node.state_time = time_.loop().Now();
    return time_.Run(store_->nodes.Create(std::move(node)));
  }
  RequestId AddRequest(std::vector<LabelName> labels) {
    NodeRequest request;
    request.SetState(RequestState::kRequested, time_.loop().Now());
    request.node_types = std::move(labels);
    request.requestor = "zuul";
    return time_.Run(store_->requests.Create("200", std::move(request), false));
  }
  static std::string Scrape(const Running& running) {
    return running.prometheus.Text([&](metrics::Sink& to) { running.launcher->ReportGauges(to); });
  }

  testing::VirtualTime time_;
  SeededRandom random_{1};
  BlockingPool blocking_pool_{0};
  std::map<ProviderName, testing::Script> scripts_;
  driver::Registry drivers_ = [this] {
    driver::Registry registry;
    registry.Add(std::make_unique<testing::ScriptedDriver>(scripts_));
    return registry;
  }();
  std::shared_ptr<driver::LoadedConfig> config_ = std::make_shared<driver::LoadedConfig>();
  std::shared_ptr<driver::PoolConfig> pool_config_;
  std::unique_ptr<MemoryZk> zk_;
  std::unique_ptr<zk::Client> client_;
  std::unique_ptr<store::Store> store_;
  std::vector<std::unique_ptr<Running>> launchers_;
};

TEST_F(StatsWorkerTest, NothingIsReportedBeforeANodeChanges) {  // launcher.27.3
  AddNode(NodeState::kHold);
  Running& np01 = Start("np01");
  time_.Advance(std::chrono::minutes(1));
  EXPECT_THAT(np01.recorder.With("nodepool.nodes."), IsEmpty());
  AddNode(NodeState::kHold);
  time_.Advance(milliseconds(10));
  EXPECT_EQ(np01.recorder.Last("nodepool.nodes.hold"), "2|g");
  EXPECT_EQ(np01.recorder.Last("nodepool.provider.elsewhere.nodes.hold"), "2|g");
  EXPECT_EQ(np01.recorder.Last("nodepool.provider.cloud.nodes.hold"), "0|g");
  EXPECT_EQ(np01.recorder.Last("nodepool.label.small.nodes.ready"), "0|g");
  EXPECT_EQ(np01.recorder.Last("nodepool.provider.cloud.pool.main.addressable_requests"), "0|g");
}

TEST_F(StatsWorkerTest, AtMostOneReportInASecond) {  // launcher.27.3
  Running& np01 = Start("np01");
  for (int i = 0; i < 100; ++i) {
    AddNode(NodeState::kHold);
    time_.Advance(milliseconds(50));
  }
  time_.Advance(seconds(2));
  EXPECT_LE(np01.recorder.With("nodepool.nodes.hold:").size(), 7u);
  EXPECT_EQ(np01.recorder.Last("nodepool.nodes.hold"), "100|g");
}

TEST_F(StatsWorkerTest, OneOfTwoLaunchersReportsTheClusterAndTheOtherTakesOver) {  // BB-32
  Running& np01 = Start("np01");
  Running& np02 = Start("np02");
  AddNode(NodeState::kHold);
  time_.Advance(seconds(15));
  EXPECT_EQ(np01.recorder.Last("nodepool.nodes.hold"), "1|g");
  EXPECT_THAT(np02.recorder.With("nodepool.nodes."), IsEmpty());
  for (Running* running : {&np01, &np02}) {
    EXPECT_EQ(running->recorder.Last("nodepool.provider.cloud.max_servers"), "3|g");
  }
  EXPECT_EQ(np01.recorder.Last("nodepool.launcher.np01.zk.client.connection_queue"), "0|g");
  EXPECT_EQ(np02.recorder.Last("nodepool.launcher.np02.zk.image_cache.playback_queue"), "0|g");
  EXPECT_THAT(np01.recorder.With("nodepool.launcher.np02"), IsEmpty());
  Stop(np01);
  np01.recorder.lines.clear();
  AddNode(NodeState::kHold);
  time_.Advance(seconds(15));
  EXPECT_EQ(np02.recorder.Last("nodepool.nodes.hold"), "2|g");
  EXPECT_THAT(np01.recorder.lines, IsEmpty());
}

TEST_F(StatsWorkerTest, ALeaderWithoutSessionStopsAtOnce) {  // launcher.md 24, launcher.27.3
  Running& np01 = Start("np01");
  Running& np02 = Start("np02");
  zk_->ExpireSession(*np01.client);
  time_.Advance(milliseconds(100));
  np01.recorder.lines.clear();
  AddNode(NodeState::kHold);
  time_.Advance(seconds(5));
  EXPECT_THAT(np01.recorder.With("nodepool.nodes."), IsEmpty());
  EXPECT_EQ(np02.recorder.Last("nodepool.nodes.hold"), "1|g");
}

TEST_F(StatsWorkerTest, AVanishedLabelIsReportedAsZeroOnce) {  // launcher.27.3
  Running& np01 = Start("np01");
  NodeId node = AddNode(NodeState::kHold);
  time_.Advance(seconds(2));
  EXPECT_EQ(np01.recorder.Last("nodepool.label.exotic.nodes.hold"), "1|g");
  auto locked = time_.Run(store_->nodes.TryLock(node));
  time_.Run(locked->Remove());
  time_.Advance(seconds(2));
  EXPECT_EQ(np01.recorder.Last("nodepool.label.exotic.nodes.hold"), "0|g");
  EXPECT_EQ(np01.recorder.Last("nodepool.provider.elsewhere.nodes.hold"), "0|g");
  np01.recorder.lines.clear();
  AddNode(NodeState::kHold, "elsewhere", "other");
  time_.Advance(seconds(2));
  EXPECT_THAT(np01.recorder.With("nodepool.nodes."), Not(IsEmpty()));
  EXPECT_THAT(np01.recorder.With("exotic"), IsEmpty());
}

TEST_F(StatsWorkerTest, TheLabelsOfARemovedPoolAreReportedAsZeroWithoutANodeChange) {
  Running& np01 = Start("np01");
  Component pool;
  pool.kind = ComponentKind::kPool;
  pool.hostname = "np03";
  pool.provider_name = ProviderName("third");
  pool.name = PoolName("main");
  pool.supported_labels = {LabelName("rare")};
  store::ComponentEntry entry(time_.loop(), *client_, pool);
  time_.Run(entry.Register());
  AddNode(NodeState::kHold);
  time_.Advance(seconds(2));
  EXPECT_EQ(np01.recorder.Last("nodepool.label.rare.nodes.ready"), "0|g");
  EXPECT_THAT(np01.recorder.With("provider.third.pool.main"), Not(IsEmpty()));
  np01.recorder.lines.clear();
  time_.Run(entry.Unregister());
  time_.Advance(seconds(2));
  EXPECT_THAT(np01.recorder.With("nodepool.label.rare.nodes.ready:0"), Not(IsEmpty()));
  np01.recorder.lines.clear();
  AddNode(NodeState::kHold);
  time_.Advance(seconds(2));
  EXPECT_THAT(np01.recorder.With("rare"), IsEmpty());
}

TEST_F(StatsWorkerTest, WithoutStatsdThereIsNoElection) {  // launcher.md 2
  Running& np01 = Start("np01", false);
  AddNode(NodeState::kHold);
  time_.Advance(seconds(15));
  EXPECT_TRUE(np01.recorder.lines.empty());
  EXPECT_FALSE(zk_->tree().Exists("/nodepool/elections/stats"));
  EXPECT_THAT(Scrape(np01), AllOf(HasSubstr("nodepool_nodes{state=\"hold\"} 1\n"),
                                  HasSubstr("nodepool_provider_max_servers{provider=\"cloud\"} 3\n")))
      << "every launcher shows the whole cluster to Prometheus";
}

TEST_F(StatsWorkerTest, TheElectionIsKazoosRecipe) {  // launcher.27.3
  Start("np01");
  auto contenders = time_.Run(client_->GetChildren("/nodepool/elections/stats"));
  ASSERT_TRUE(contenders);
  ASSERT_EQ(contenders->names.size(), 1u);
  auto data = time_.Run(client_->Get("/nodepool/elections/stats/" + contenders->names[0]));
  EXPECT_EQ(data->data, fmt::format("np01-{}", getpid()));
}

TEST_F(StatsWorkerTest, LocalGaugesComeEveryTenSeconds) {  // launcher.27.4, launcher.27.5
  Running& np01 = Start("np01");
  np01.recorder.lines.clear();
  time_.Advance(std::chrono::minutes(1));
  for (std::string key :
       {"provider.cloud.max_servers:3|g", "launcher.np01.zk.client.connection_queue:0|g",
        "launcher.np01.zk.node_cache.event_queue:0|g", "launcher.np01.zk.node_cache.playback_queue:0|g",
        "launcher.np01.zk.request_cache.event_queue:0|g", "launcher.np01.zk.request_cache.playback_queue:0|g",
        "launcher.np01.zk.image_cache.event_queue:0|g", "launcher.np01.zk.image_cache.playback_queue:0|g"}) {
    EXPECT_EQ(np01.recorder.With("nodepool." + key).size(), 6u) << key;
  }
}

TEST_F(StatsWorkerTest, AChangedConfigurationIsReportedAtOnce) {  // launcher.27.4
  config_->common.tenant_limits["t1"] = {{"cores", 10}};
  Running& np01 = Start("np01");
  AddNode(NodeState::kHold, "cloud", "small");
  time_.Advance(seconds(2));
  np01.recorder.lines.clear();
  auto changed = std::make_shared<driver::LoadedConfig>(*config_);
  changed->common.tenant_limits["t1"]["cores"] = 20;
  changed->providers.clear();
  np01.launcher->Reconfigure(changed);
  time_.Advance(milliseconds(10));
  EXPECT_EQ(np01.recorder.Last("nodepool.tenant_limits.t1.cores"), "20|g");
  EXPECT_EQ(np01.recorder.Last("nodepool.provider.cloud.max_servers"), "0|g")
      << "it is not configured any more";
  time_.Advance(std::chrono::minutes(15));
  EXPECT_EQ(np01.recorder.Last("nodepool.provider.cloud.up"), "0|g") << "nor does it run";
  EXPECT_EQ(np01.recorder.With("nodepool.provider.cloud.max_servers").size(), 1u) << "reported as zero once";
  EXPECT_THAT(np01.recorder.With("nodepool.provider.cloud.pool.main.addressable_requests:0"), Not(IsEmpty()));
}

TEST_F(StatsWorkerTest, MalformedRecordsAreCountedOncePerVersion) {  // D-08
  Running& np01 = Start("np01");
  AddNode(NodeState::kHold);
  AddRequest({LabelName("nowhere")});
  ASSERT_TRUE(time_.Run(client_->Create("/nodepool/nodes/0000000099", "{", zk::CreateMode::kPersistent)));
  ASSERT_TRUE(
      time_.Run(client_->Create("/nodepool/requests/200-0000000099", "[]", zk::CreateMode::kPersistent)));
  time_.Advance(seconds(25));
  EXPECT_THAT(np01.recorder.With("malformed"),
              ElementsAre("nodepool.malformed_records.node:1|c", "nodepool.malformed_records.request:1|c"));
  EXPECT_THAT(Scrape(np01), HasSubstr("nodepool_malformed_records_total{kind=\"node\"} 1\n"));
}

TEST_F(StatsWorkerTest, AProviderThatDoesNotStartIsSeen) {  // D-30
  scripts_[ProviderName("cloud")].start_error = [](int start) -> std::optional<Error> {
    if (start < 3) return Error(Verdict::kFail, "cloud is away");
    return std::nullopt;
  };
  Running& np01 = Start("np01");
  EXPECT_EQ(np01.recorder.Last("nodepool.provider.cloud.up"), "0|g");
  EXPECT_FALSE(np01.launcher->is_ready());
  EXPECT_EQ(np01.launcher->WhyNotReady(), "Provider cloud cannot be used: cloud is away.");
  time_.Advance(seconds(9));
  EXPECT_EQ(np01.recorder.With("nodepool.provider.cloud.start_failures:1|c").size(), 3u);
  EXPECT_EQ(np01.recorder.Last("nodepool.provider.cloud.up"), "1|g")
      << "reported at once, not with the next tick";
  EXPECT_TRUE(np01.launcher->is_ready());
}

TEST_F(StatsWorkerTest, AProviderThatCannotBeUsedIsNotUp) {  // D-30
  Running& np01 = Start("np01");
  testing::Script& script = scripts_[ProviderName("cloud")];
  EXPECT_EQ(np01.recorder.Last("nodepool.provider.cloud.up"), "1|g");
  script.report_fault(driver::ProviderFault{"the cloud is away"});
  time_.Advance(milliseconds(10));
  EXPECT_EQ(np01.recorder.Last("nodepool.provider.cloud.up"), "0|g") << "at once, not with the next tick";
  EXPECT_THAT(Scrape(np01), HasSubstr("nodepool_provider_up{provider=\"cloud\"} 0\n"));
  script.report_fault(std::nullopt);
  time_.Advance(milliseconds(10));
  EXPECT_EQ(np01.recorder.Last("nodepool.provider.cloud.up"), "1|g");
}

TEST_F(StatsWorkerTest, WhatTheCleanersRemoveIsCounted) {
  Running& np01 = Start("np01");
  AddNode(NodeState::kUsed, "cloud", "small");
  time_.Run(client_->Create("/nodepool/nodes/0000000099", "", zk::CreateMode::kPersistent));
  NodeRequest lost;
  lost.SetState(RequestState::kPending, time_.loop().Now());
  lost.node_types = {LabelName("nowhere")};
  time_.Run(store_->requests.Create("200", lost, false));
  Node stale = MakeNode(NodeState::kReady, "cloud", {LabelName("small")});
  stale.allocated_to = RequestId("200-0000009999");
  time_.Run(store_->nodes.Create(stale));
  Node unfinished = MakeNode(NodeState::kInit, "cloud", {LabelName("small")});
  unfinished.pool = PoolName("main");
  time_.Run(store_->nodes.Create(unfinished));
  time_.Advance(std::chrono::minutes(3));
  for (std::string kind :
       {"deleted_node", "empty_node", "lost_request", "deallocated_node", "unfinished_node"}) {
    EXPECT_THAT(np01.recorder.With("nodepool.cleanup." + kind + ":1|c"), Not(IsEmpty())) << kind;
  }
}

TEST_F(StatsWorkerTest, WaitingRequestsSayWhy) {
  pool_config_->max_servers = 1;
  Running& np01 = Start("np01");
  log::Capture log;
  RequestId first = AddRequest({LabelName("small")});
  time_.Advance(seconds(1));
  RequestId second = AddRequest({LabelName("small")});
  time_.Advance(seconds(1));
  RequestId third = AddRequest({LabelName("small")});
  time_.Advance(seconds(1));
  std::map<RequestId, RequestStatus> found;
  np01.launcher->ForEachRequest([&](const RequestStatus& status) {
    found[status.id] = status;
    return true;
  });
  ASSERT_EQ(found.size(), 3u);
  EXPECT_TRUE(found[first].waits.empty());
  ASSERT_EQ(found[second].waits.size(), 1u);
  EXPECT_EQ(found[second].accepted_by, (PoolKey{ProviderName("cloud"), PoolName("main")}));
  EXPECT_EQ(found[second].waits[0].text, "uses 1 of 1 instances; raise its max-servers, or wait for nodes");
  ASSERT_EQ(found[third].waits.size(), 1u);
  EXPECT_EQ(found[third].accepted_by, std::nullopt);
  EXPECT_EQ(found[third].waits[0].code, "capacity-reserved");
  EXPECT_EQ(log.Count("[node_request: " + third.value +
                      "] The request for small waits: cloud main uses 1 of 1 instances; raise its "
                      "max-servers, or wait for "
                      "nodes"),
            1);
}

}  // namespace

}  // namespace nodepool::launcher
