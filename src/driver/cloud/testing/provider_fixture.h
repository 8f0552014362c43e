#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/task.h"
#include "async/testing/virtual_time.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/records_environment.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::driver::cloud {

// A provider on a ZooKeeper in memory, in virtual time, with what its tests observe.
class ProviderFixture : public ::testing::Test, protected ProviderObserver {
 protected:
  void SetUp() override {
    nodes.Start();
    images.Start();
    time.Run(nodes.WaitSynced());
    time.Run(images.WaitSynced());
  }

  void TearDown() override {
    if (provider) time.Run(provider->Stop(), std::chrono::hours(3));
    time.Run(nodes.Stop());
    time.Run(images.Stop());
    time.Run(client->Close());
  }

  // For the provider; what it reports is in the members below.
  ProviderEnvironment Environment() {
    ProviderEnvironment environment{
        {time.loop(), random, blocking_pool}, records, [this] { ++capacity_changes; }, this};
    environment.report_fault = [this](const std::optional<ProviderFault>& fault) {
      faults.push_back(fault ? fault->cause : "");
    };
    return environment;
  }

  // A launch as the core does it, with the node's record.
  Task<> LaunchNode(std::shared_ptr<NodeRequestHandler> handler, Node& record, NodeId& id) {
    Node fresh;
    fresh.SetState(NodeState::kInit, time.loop().Now());
    fresh.provider = served->name;
    fresh.pool = wanted->pool;
    fresh.type = {wanted->name};
    fresh.attributes = served->pools.at(wanted->pool)->node_attributes;
    co_await handler->SetNodeMetadata(fresh);
    auto change = [this](Node& node) {
      node.SetState(NodeState::kBuilding, time.loop().Now());
      return store::Change::kWrite;
    };
    store::LockedNode node = co_await store.nodes.CreateLocked(std::move(fresh), change);
    id = node.id();
    Outcome<> launched = co_await Attempt(handler->Launch(node));
    record = node.record();
    co_await node.Unlock();
    if (!launched) launched.error().Rethrow();
  }
  // For a request of one node.
  Task<> LaunchNode(Node& record, NodeId& id) {
    store::StoredRequest request;
    request.id = RequestId("100-0000000001");
    request.record = request_record;
    request.record.node_types = {wanted->name};
    std::shared_ptr<NodeRequestHandler> handler =
        provider->RequestHandler(served->pools.at(wanted->pool), request);
    co_await LaunchNode(std::move(handler), record, id);
  }
  Task<> LaunchNode() { return LaunchNode(last, last_id); }
  void Launch() { time.Run(LaunchNode(), std::chrono::hours(10)); }
  // Why a launch fails that is to fail.
  Failure FailureOfLaunch() {
    Outcome<> launched = time.Run(Attempt(LaunchNode()), std::chrono::hours(10));
    if (!launched) return launched.error();
    ADD_FAILURE() << "the launch succeeded";
    return Failure(Error(Verdict::kFail, ""));
  }
  Error LaunchFails() {
    Failure failure = FailureOfLaunch();
    return Error(failure.verdict(), failure.message());
  }
  void Delete() { time.Run(provider->DeleteResources(last_id, last), std::chrono::hours(1)); }

  void LaunchAttemptEnded(const LaunchOutcome& outcome) override {
    results.push_back(outcome.result);
    if (!outcome.machine_type.empty()) machine_types.push_back(outcome.machine_type);
  }
  void LeakedResourcesDeleted(const ProviderName&, const std::string& kind, int count) override {
    leaks.push_back(std::to_string(count) + " " + kind);
  }

  nodepool::testing::VirtualTime time;
  nodepool::testing::MemoryZk zk{time.loop()};
  std::unique_ptr<zk::Client> client = zk.Connect();
  SeededRandom random{1};
  BlockingPool blocking_pool{0};
  store::Store store{time.loop(), *client, random};
  store::NodeCache nodes{time.loop(), *client};
  store::ImageCache images{time.loop(), *client};
  RecordsEnvironment records{store, nodes, images};
  std::shared_ptr<const ProviderConfig> served;  // the provider's configuration
  const LabelConfig* wanted = nullptr;           // by launches
  std::unique_ptr<Provider> provider;
  NodeRequest request_record;
  Node last;  // the record of the last launch
  NodeId last_id;
  std::vector<std::string> results;        // of attempts
  std::vector<std::string> machine_types;  // of the machines that were created
  std::vector<std::string> leaks;
  std::vector<std::string> faults;  // as reported; empty: none
  int capacity_changes = 0;
};

// A provider of a cloud that has one label in one pool, both with the driver's own types.
template <class Config, class Label = LabelConfig, class Pool = PoolConfig, class OwnAdapter = Adapter>
class CloudFixture : public ProviderFixture {
 protected:
  CloudFixture(std::string provider_name, std::string driver, std::string label_name = "small") {
    auto made_label = std::make_shared<Label>();
    made_label->name = LabelName(std::move(label_name));
    auto made_pool = std::make_shared<Pool>();
    made_pool->name = PoolName("main");
    made_pool->Offer(made_label);
    config->name = ProviderName(std::move(provider_name));
    config->driver = std::move(driver);
    config->pools[made_pool->name] = made_pool;
    label = made_label.get();
    pool = made_pool.get();
    served = config;
    wanted = label;
  }

  template <class Make>
  void StartProvider(Make make_adapter, HostKeyScan scan = nullptr) {
    auto make = [&](const AdapterEnvironment& environment) {
      std::unique_ptr<OwnAdapter> made = make_adapter(environment);
      adapter = made.get();
      return made;
    };
    provider = MakeCloudProvider(Environment(), config, make, std::move(scan));
    time.Run(provider->Start());
  }

  std::shared_ptr<Config> config = std::make_shared<Config>();
  Label* label = nullptr;
  Pool* pool = nullptr;
  OwnAdapter* adapter = nullptr;  // the provider's
};

}  // namespace nodepool::driver::cloud
