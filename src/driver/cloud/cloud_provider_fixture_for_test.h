#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "async/testing/virtual_time.h"
#include "base/subscription.h"
#include "driver/cloud/cloud_provider.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/scripted_adapter_for_test.h"
#include "driver/records_environment.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::driver::cloud {

// A provider around a scripted cloud, on a ZooKeeper in memory, in virtual time.
class ProviderTest : public ::testing::Test, protected ProviderObserver {
 protected:
  void SetUp() override {
    nodes.Start();
    images.Start();
    time.Run(nodes.WaitSynced());
    time.Run(images.WaitSynced());
    watch_ = nodes.OnChange(
        [this](const NodeId&, const store::StoredNode* before, const store::StoredNode* after) {
          if (after == nullptr) return;
          bool is_written = before == nullptr || before->revision.version != after->revision.version;
          if (is_written) history.push_back(Summary(after->record));
        });
    auto label = std::make_shared<LabelConfig>();
    label->name = LabelName("small");
    label->cloud_image = "debian";
    label->connection.username = "zuul";
    auto pool = std::make_shared<PoolConfig>();
    pool->name = PoolName("main");
    pool->Offer(label);
    pool->node_attributes = boost::json::object{{"executor-zone", "north"}};
    config->name = ProviderName("cloud");
    config->pools[pool->name] = pool;
    this->label = label.get();
    this->pool = pool.get();
  }

  void TearDown() override {
    if (provider) time.Run(provider->Stop(), std::chrono::hours(3));
    watch_.Reset();
    time.Run(nodes.Stop());
    time.Run(images.Stop());
    time.Run(client->Close());
  }

  void StartProvider() {
    auto scripted = std::make_unique<ScriptedAdapter>(time.loop());
    cloud = scripted.get();
    if (prepare_cloud) prepare_cloud(*cloud);
    ProviderEnvironment environment{
        time.loop(), random, blocking_pool, records, [this] { ++capacity_changes; }, this};
    environment.report_fault = [this](const std::optional<ProviderFault>& fault) { faults.push_back(fault); };
    provider = MakeCloudProvider(std::move(environment), config, std::move(scripted),
                                 [this](std::string, int port, bool wants_keys, SteadyTime deadline) {
                                   scanned_port = port;
                                   return Scan(wants_keys, deadline);
                                 });
    time.Run(provider->Start());
  }

  Task<std::vector<std::string>> Scan(bool wants_keys, SteadyTime deadline) {
    ++scans;
    bool fails = failing_scans > 0 && failing_scans-- > 0;
    co_await time.loop().SleepUntil(fails ? deadline : time.loop().SteadyNow() + std::chrono::seconds(1));
    if (fails) throw Error(Verdict::kTimedOut, "timeout connecting");
    std::vector<std::string> keys;
    if (wants_keys) keys = {"ssh-ed25519 AAAA"};
    co_return keys;
  }

  std::unique_ptr<NodeRequestHandler> MakeHandler() {
    store::StoredRequest request;
    request.id = RequestId("100-0000000001");
    request.record.requestor = "tester";
    return provider->RequestHandler(config->pools.at(PoolName("main")), request);
  }
  // A launch as the core does it, including the node's record.
  Task<> LaunchNode() { return LaunchNode(MakeHandler()); }
  Task<> LaunchNode(std::shared_ptr<NodeRequestHandler> handler) {
    Node fresh;
    fresh.SetState(NodeState::kInit, time.loop().Now());
    fresh.provider = config->name;
    fresh.pool = PoolName("main");
    fresh.type = {LabelName("small")};
    fresh.attributes = pool->node_attributes;
    co_await handler->SetNodeMetadata(fresh);
    auto change = [this](Node& record) {
      record.SetState(NodeState::kBuilding, time.loop().Now());
      return store::Change::kWrite;
    };
    store::LockedNode node = co_await store.nodes.CreateLocked(std::move(fresh), change);
    node_id = node.id();
    std::exception_ptr error;
    try {
      co_await handler->Launch(node);
    } catch (...) {
      error = std::current_exception();
    }
    launched_record = node.record();
    if (error) std::rethrow_exception(error);
  }

  // The verdict of a launch that is expected to fail.
  Verdict LaunchFails() {
    try {
      time.Run(LaunchNode(), std::chrono::hours(5));
    } catch (...) {
      return VerdictOf(std::current_exception());
    }
    ADD_FAILURE() << "the launch succeeded";
    return Verdict::kFail;
  }

  Node Stored() { return time.Run(store.nodes.Read(node_id))->record; }

  // The parts of a record that show in which order a watcher sees changes.
  static std::string Summary(const Node& record) {
    std::string text(ToString(record.state.value_or(NodeState::kInit)));
    if (record.image_id) text += " image";
    if (!record.external_id.is_null()) text += " " + ToText(record.external_id);
    if (record.interface_ip) text += " address";
    if (!record.host_keys.empty()) text += " keys";
    return text;
  }

  void LaunchAttemptEnded(const LaunchOutcome& outcome) override { outcomes.push_back(outcome); }
  void LeakedResourcesDeleted(const ProviderName&, const std::string& kind, int count) override {
    leaks.push_back(std::to_string(count) + " " + kind);
  }

  void CandidateTried(const CandidateOutcome& outcome) override {
    candidates.push_back(outcome.candidate + (outcome.is_created ? " created" : " lacks capacity"));
  }
  void MachineTaken(const ProviderName&, bool is_in_use) override {
    taken.push_back(is_in_use ? "in use" : "ready");
  }

  std::vector<std::string> Results() const {
    std::vector<std::string> results;
    for (const LaunchOutcome& outcome : outcomes) results.push_back(outcome.result);
    return results;
  }

  testing::VirtualTime time;
  testing::MemoryZk zk{time.loop()};
  std::unique_ptr<zk::Client> client = zk.Connect();
  SeededRandom random{1};
  BlockingPool blocking_pool{0};
  store::Store store{time.loop(), *client, random};
  store::NodeCache nodes{time.loop(), *client};
  store::ImageCache images{time.loop(), *client};
  RecordsEnvironment records{store, nodes, images};

  std::shared_ptr<ProviderConfig> config = std::make_shared<ProviderConfig>();
  LabelConfig* label = nullptr;
  PoolConfig* pool = nullptr;
  std::function<void(ScriptedAdapter&)> prepare_cloud;
  std::unique_ptr<Provider> provider;
  ScriptedAdapter* cloud = nullptr;  // the provider's

  int capacity_changes = 0;
  std::vector<std::optional<ProviderFault>> faults;  // as reported
  int scans = 0;
  int failing_scans = 0;
  int scanned_port = 0;
  NodeId node_id;
  Node launched_record;
  std::vector<std::string> history;
  std::vector<LaunchOutcome> outcomes;
  std::vector<std::string> leaks;
  std::vector<std::string> candidates;
  std::vector<std::string> taken;

 private:
  Subscription watch_;
};

}  // namespace nodepool::driver::cloud
