#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>

#include "async/testing/virtual_time.h"
#include "base/subscription.h"
#include "driver/testing/scripted_driver.h"
#include "launcher/launcher.h"
#include "zk/grouping_client.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::launcher {

using store::Change;
using testing::Script;

// Launchers on an in-process ZooKeeper, in virtual time, and a client that behaves
// as Zuul does. The derived fixture decides which providers there are.
class LauncherFixture : public ::testing::Test {
 protected:
  struct Running {
    std::unique_ptr<zk::Client> client;
    std::unique_ptr<testing::FaultyZk> recorder;  // the launcher's connection
    std::unique_ptr<zk::GroupingClient> grouping;
    std::unique_ptr<Launcher> launcher;
    bool is_stopped = false;
  };

  void SetUp() override {
    client_ = zk_.Connect();
    client_store_ = std::make_unique<store::Store>(time_.loop(), *client_, random_);
  }
  void TearDown() override {
    for (auto& launcher : launchers_) StopLauncher(*launcher);
    launchers_.clear();
    if (watched_nodes_) time_.Run(watched_nodes_->Stop());
    if (watched_requests_) time_.Run(watched_requests_->Stop());
    time_.Run(client_->Close());
  }

  // Loads this configuration.
  void LoadYaml(const std::string& text) {
    std::string path = (std::filesystem::temp_directory_path() / "nodepool-launcher-XXXXXX").string();
    ::close(::mkstemp(path.data()));
    std::ofstream(path) << text;
    auto loaded = driver::LoadConfig(path, std::nullopt, drivers_, nullptr);
    std::filesystem::remove(path);
    ASSERT_TRUE(loaded) << loaded.error().message() << "\n" << text;
    ASSERT_THAT((*loaded)->common.warnings, ::testing::IsEmpty());
    config_ = std::make_shared<driver::LoadedConfig>(**loaded);
  }

  // --- Launchers ------------------------------------------------------------
  virtual Running& StartLauncher(std::string hostname = "np01") {
    Running& running = AddLauncher(hostname);
    time_.Run(running.launcher->Start());
    return running;
  }
  // One that is not started yet.
  Running& AddLauncher(std::string hostname) {
    auto running = std::make_unique<Running>();
    running->client = zk_.Connect();
    running->recorder = std::make_unique<testing::FaultyZk>(*running->client);
    running->grouping = std::make_unique<zk::GroupingClient>(*running->recorder, grouping_);
    Launcher::Options options{hostname, hostname + ".example.org", intervals_, duties_};
    running->launcher = std::make_unique<Launcher>(time_.loop(), random_, pool_, metrics_, *running->grouping,
                                                   drivers_, config_, std::move(options));
    launchers_.push_back(std::move(running));
    return *launchers_.back();
  }
  void StopLauncher(Running& running) {
    if (running.is_stopped) return;
    running.is_stopped = true;
    running.recorder->FailNever();
    time_.Run(running.launcher->Stop());
    time_.Run(running.client->Close());
    time_.Run(running.launcher->Stop());
  }

  // As ZooKeeper sees it: the process is gone and its session has ended.
  void Kill(Running& running) {
    zk_.Disconnect(*running.client);
    zk_.ExpireSession(*running.client);
  }

  // --- Records --------------------------------------------------------------
  RequestId Request(std::vector<std::string> labels, std::function<void(NodeRequest&)> adjust = {},
                    std::string precedence = "200") {
    NodeRequest request;
    request.SetState(RequestState::kRequested, time_.loop().Now());
    for (std::string& label : labels) request.node_types.emplace_back(std::move(label));
    request.requestor = "test";
    if (adjust) adjust(request);
    auto creation = client_store_->requests.Create(std::move(precedence), std::move(request), false);
    return time_.Run(std::move(creation));
  }
  // Adds an unlocked node of pool `main` of provider `cloud`, label `small`.
  NodeId AddNode(NodeState state, std::function<void(Node&)> adjust = {}) {
    Node node;
    node.SetState(state, time_.loop().Now());
    node.provider = ProviderName("cloud");
    node.pool = PoolName("main");
    node.type = {LabelName("small")};
    if (adjust) adjust(node);
    return time_.Run(client_store_->nodes.Create(std::move(node)));
  }
  std::optional<NodeRequest> Read(const RequestId& id) {
    auto stored = time_.Run(client_store_->requests.Read(id));
    if (!stored) return std::nullopt;
    return stored->record;
  }
  std::optional<Node> Read(const NodeId& id) {
    auto stored = time_.Run(client_store_->nodes.Read(id));
    if (!stored) return std::nullopt;
    return stored->record;
  }
  // The nodes of a fulfilled request.
  std::vector<NodeId> NodesOf(const RequestId& id) { return Read(id)->nodes; }
  // The first of its nodes.
  Node NodeOf(const RequestId& id) { return *Read(NodesOf(id).at(0)); }
  std::vector<NodeId> Nodes() { return time_.Run(client_store_->nodes.List()); }
  std::vector<NodeId> NodesIn(NodeState state) {
    std::vector<NodeId> found;
    for (const NodeId& id : Nodes()) {
      std::optional<Node> node = Read(id);
      if (node && node->state == state) found.push_back(id);
    }
    return found;
  }
  int FreeNodes() {
    int count = 0;
    for (const NodeId& id : NodesIn(NodeState::kReady)) count += Read(id)->is_free() ? 1 : 0;
    return count;
  }
  // Calls `see` with every version of every record, as a client's watch shows them.
  Subscription WatchNodes(std::function<void(const NodeId&, const Node&)> see) {
    if (!watched_nodes_) {
      watched_nodes_ = std::make_unique<store::NodeCache>(time_.loop(), *client_);
      watched_nodes_->Start();
      time_.Run(watched_nodes_->WaitSynced());
    }
    return watched_nodes_->OnChange(
        [see](const NodeId& id, const store::StoredNode*, const store::StoredNode* after) {
          if (after != nullptr) see(id, after->record);
        });
  }
  // The same for requests.
  Subscription WatchRequests(std::function<void(const RequestId&, const store::StoredRequest&)> see) {
    if (!watched_requests_) {
      watched_requests_ = std::make_unique<store::RequestCache>(time_.loop(), *client_);
      watched_requests_->Start();
      time_.Run(watched_requests_->WaitSynced());
    }
    return watched_requests_->OnChange(
        [see](const RequestId& id, const store::StoredRequest*, const store::StoredRequest* after) {
          if (after != nullptr) see(id, *after);
        });
  }
  // Whether any pool announces that it waits for capacity.
  bool IsPaused() {
    for (const std::string& name : Children("/nodepool/components/pool")) {
      auto data = time_.Run(client_->Get("/nodepool/components/pool/" + name));
      if (data && ParseComponent(ComponentKind::kPool, data->data)->is_paused) return true;
    }
    return false;
  }
  bool IsLocked(const NodeId& id) { return !time_.Run(client_store_->nodes.Contenders(id)).empty(); }
  std::vector<std::string> Children(std::string path) {
    auto children = time_.Run(client_->GetChildren(path));
    return children ? children->names : std::vector<std::string>();
  }
  // Registers a pool of another launcher; a second call changes its record. Defaults: provider `other`, no
  // labels, priority 100.
  std::string AddForeignPool(std::function<void(Component&)> adjust = {}) {
    Component pool;
    pool.kind = ComponentKind::kPool;
    pool.hostname = "elsewhere";
    pool.state = ComponentState::kRunning;
    pool.id = LauncherId("elsewhere-PoolWorker.other-main-0");
    pool.name = PoolName("main");
    pool.provider_name = ProviderName("other");
    if (adjust) adjust(pool);
    std::string path = "/nodepool/components/pool/elsewhere";
    Put(path, ToJson(pool));
    return path;
  }
  void RemoveForeignPool(const std::string& path) { time_.Run(client_->Delete(path, -1)); }
  // Creates or replaces a znode.
  void Put(const std::string& path, std::string data) {
    auto created = time_.Run(zk::CreateWithParents(*client_, path, data, zk::CreateMode::kPersistent));
    if (!created) time_.Run(client_->Set(path, data, -1));
  }
  void DeleteRequest(const RequestId& id) { time_.Run(client_store_->requests.Delete(id)); }
  void ChangeNode(const NodeId& id, std::function<void(Node&)> change) {
    auto write = [change](Node& node) {
      change(node);
      return Change::kWrite;
    };
    time_.Run(client_store_->nodes.UpdateUnlocked(id, write));
  }

  // --- Time -----------------------------------------------------------------
  // Looks ten times a second, and not while nothing happens.
  bool Await(std::function<bool()> condition, Duration limit = std::chrono::seconds(120)) {
    SteadyTime end = time_.loop().SteadyNow() + limit;
    auto is_reached = [&] {
      time_.Advance(Duration(0));  // what is ready
      return condition();
    };
    while (!is_reached()) {
      Duration left = end - time_.loop().SteadyNow();
      if (left <= Duration(0)) return false;
      Duration quiet = time_.Idle().value_or(left);
      time_.Advance(std::max<Duration>(std::chrono::milliseconds(100), std::min(quiet, left)));
    }
    return true;
  }
  bool AwaitState(const RequestId& id, RequestState state, Duration limit = std::chrono::seconds(120)) {
    auto is_reached = [&] {
      std::optional<NodeRequest> request = Read(id);
      return request && request->state == state;
    };
    return Await(is_reached, limit);
  }

  // --- What a consumer does (coordination.md 12.1) -----------------------------
  std::vector<store::LockedNode> Take(const RequestId& id) {
    std::vector<store::LockedNode> taken;
    NodeRequest request = *Read(id);
    for (const NodeId& node : request.nodes) {
      auto locked = time_.Run(client_store_->nodes.TryLock(node));
      EXPECT_TRUE(locked) << "a fulfilled request's nodes are unlocked";
      if (!locked) continue;
      EXPECT_EQ(locked->record().allocated_to, id);
      taken.push_back(std::move(*locked));
    }
    DeleteRequest(id);
    for (auto& node : taken) SetState(node, NodeState::kInUse);
    return taken;
  }
  // Requests nodes and takes them as a consumer does.
  std::vector<store::LockedNode> Use(std::vector<std::string> labels,
                                     std::function<void(NodeRequest&)> adjust = {}) {
    RequestId id = Request(std::move(labels), std::move(adjust));
    if (AwaitState(id, RequestState::kFulfilled)) return Take(id);
    ADD_FAILURE() << "the request was not fulfilled";
    return {};
  }
  void SetState(store::LockedNode& node, NodeState state) {
    WallTime now = time_.loop().Now();
    time_.Run(node.Update([state, now](Node& record) {
      record.SetState(state, now);
      return Change::kWrite;
    }));
  }
  void Return(store::LockedNode& node) {
    SetState(node, NodeState::kUsed);
    time_.Run(node.Unlock());
  }
  void Return(std::vector<store::LockedNode>& nodes) {
    for (auto& node : nodes) Return(node);
    nodes.clear();
  }

  testing::VirtualTime time_;
  SeededRandom random_{1};
  BlockingPool pool_{0};
  metrics::Metrics metrics_;
  testing::MemoryZk zk_{time_.loop()};
  driver::Registry drivers_;
  std::shared_ptr<driver::LoadedConfig> config_ = std::make_shared<driver::LoadedConfig>();
  Intervals intervals_;
  // Of launchers started from now on. No write waits for others, unless a test wants it.
  zk::GroupingClient::Bounds grouping_{.at_once = std::numeric_limits<int>::max()};
  Duties duties_;
  std::unique_ptr<zk::Client> client_;
  std::unique_ptr<store::Store> client_store_;
  std::unique_ptr<store::NodeCache> watched_nodes_;
  std::unique_ptr<store::RequestCache> watched_requests_;
  std::vector<std::unique_ptr<Running>> launchers_;
};

// Scripted providers; initially one, `cloud`, with a pool `main` for the labels `small` and `large`.
class LauncherTest : public LauncherFixture {
 protected:
  void SetUp() override {
    LauncherFixture::SetUp();
    drivers_.Add(std::make_unique<testing::ScriptedDriver>(scripts_));
    AddPool("cloud", "main", {"small", "large"});
  }

  // Replaces a pool of the same name. Call before the launcher starts.
  driver::PoolConfig& AddPool(std::string provider, std::string pool, std::vector<std::string> labels) {
    auto& config = config_->providers[ProviderName(provider)];
    auto changed = std::make_shared<driver::ProviderConfig>(config ? *config : driver::ProviderConfig());
    changed->name = ProviderName(provider);
    changed->driver = "scripted";
    auto pool_config = std::make_shared<driver::PoolConfig>();
    pool_config->name = PoolName(pool);
    for (const std::string& label : labels) {
      auto label_config = std::make_shared<driver::LabelConfig>();
      label_config->name = LabelName(label);
      label_config->cloud_image = "image";
      pool_config->Offer(label_config);
      config_->common.labels.try_emplace(label_config->name, config::Label{label_config->name, 0, {}});
    }
    changed->pools[pool_config->name] = pool_config;
    config = changed;
    return *pool_config;
  }
  driver::ProviderConfig& provider_config(std::string provider = "cloud") {
    return const_cast<driver::ProviderConfig&>(*config_->providers.at(ProviderName(provider)));
  }
  config::Label& label_config(std::string label) { return config_->common.labels.at(LabelName(label)); }
  Script& script(std::string provider = "cloud") { return scripts_[ProviderName(provider)]; }

  std::map<ProviderName, Script> scripts_;
};

}  // namespace nodepool::launcher
