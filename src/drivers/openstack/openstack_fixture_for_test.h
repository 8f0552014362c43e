#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "driver/cloud/cloud_provider.h"
#include "driver/records_environment.h"
#include "drivers/openstack/openstack_adapter.h"
#include "drivers/openstack/testing/openstack_imposter.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::drivers::openstack {

// A provider of driver openstack with an OpenStack imposter, in virtual time.
class OpenstackTest : public ::testing::Test, protected driver::ProviderObserver {
 protected:
  void SetUp() override {
    nodes.Start();
    images.Start();
    time.Run(nodes.WaitSynced());
    time.Run(images.WaitSynced());
    auto shape = std::make_shared<OpenstackLabel>();
    shape->name = LabelName("small");
    shape->cloud_image = "debian";
    shape->flavor_name = "m1.small";
    label = shape.get();
    auto made_pool = std::make_shared<OpenstackPool>();
    made_pool->name = PoolName("main");
    made_pool->auto_floating_ip = false;
    made_pool->Offer(shape);
    pool = made_pool.get();
    config->name = ProviderName("cloud");
    config->pools[made_pool->name] = made_pool;
    config->cloud_images["debian"] = {{.name = "debian", .external_name = "debian"}};
    CloudConfig& cloud_config = config->cloud_config;
    cloud_config.name = "vendor";
    cloud_config.region = "RegionOne";
    cloud_config.interfaces = {"public"};
    cloud_config.is_private = true;
    cloud_config.credentials.type = "password";
    cloud_config.credentials.options = {{"auth_url", base + "/identity/v3"},
                                        {"username", "ci"},
                                        {"password", "secret"},
                                        {"project_name", "ci"}};
  }

  void TearDown() override {
    if (provider) time.Run(provider->Stop(), std::chrono::hours(3));
    time.Run(nodes.Stop());
    time.Run(images.Stop());
    time.Run(client->Close());
  }

  void Start() {
    driver::ProviderEnvironment environment{
        time.loop(), random, blocking_pool, records, [this] { ++capacity_changes; }, this};
    auto http = std::make_unique<testing::ImposterClient>(time.loop(), imposter);
    auto made = std::make_unique<OpenstackAdapter>(environment, config, std::move(http));
    adapter = made.get();
    provider = driver::cloud::MakeCloudProvider(std::move(environment), config, std::move(made), nullptr);
    time.Run(provider->Start());
    imposter.ClearCalls();
  }

  Task<> LaunchNode() {
    store::StoredRequest request;
    request.id = RequestId("100-0000000001");
    request.record.tenant_name = "tenant-1";
    request.record.node_types = {LabelName("small")};
    std::unique_ptr<driver::NodeRequestHandler> handler =
        provider->RequestHandler(config->pools.begin()->second, request);
    Node fresh;
    fresh.SetState(NodeState::kInit, time.loop().Now());
    fresh.provider = config->name;
    fresh.pool = PoolName("main");
    fresh.type = {LabelName("small")};
    co_await handler->SetNodeMetadata(fresh);
    auto change = [this](Node& record) {
      record.SetState(NodeState::kBuilding, time.loop().Now());
      return store::Change::kWrite;
    };
    store::LockedNode node = co_await store.nodes.CreateLocked(std::move(fresh), change);
    last_id = node.id();
    std::exception_ptr error;
    try {
      co_await handler->Launch(node);
    } catch (...) {
      error = std::current_exception();
    }
    last = node.record();
    co_await node.Unlock();
    if (error) std::rethrow_exception(error);
  }
  void Launch() { time.Run(LaunchNode(), std::chrono::hours(10)); }
  Error LaunchFails() {
    try {
      Launch();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "the launch succeeded";
    return Error(Verdict::kFail, "");
  }
  void Delete() { time.Run(provider->DeleteResources(last_id, last), std::chrono::hours(1)); }

  boost::json::object LastServerRequest() {
    const auto* call = imposter.LastCall("POST", "/compute/v2.1/servers");
    return boost::json::parse(call->body).as_object().at("server").as_object();
  }

  void LaunchAttemptEnded(const driver::LaunchOutcome& outcome) override {
    results.push_back(outcome.result);
  }
  void LeakedResourcesDeleted(const ProviderName&, const std::string& kind, int count) override {
    leaks.push_back(std::to_string(count) + " " + kind);
  }

  testing::VirtualTime time;
  std::string base = "http://cloud.example";
  testing::OpenstackImposter imposter{time.loop(), base};
  testing::MemoryZk zk{time.loop()};
  std::unique_ptr<zk::Client> client = zk.Connect();
  SeededRandom random{1};
  BlockingPool blocking_pool{0};
  store::Store store{time.loop(), *client, random};
  store::NodeCache nodes{time.loop(), *client};
  store::ImageCache images{time.loop(), *client};
  driver::RecordsEnvironment records{store, nodes, images};
  std::shared_ptr<OpenstackProviderConfig> config = std::make_shared<OpenstackProviderConfig>();
  OpenstackLabel* label = nullptr;
  OpenstackPool* pool = nullptr;
  std::unique_ptr<driver::Provider> provider;
  OpenstackAdapter* adapter = nullptr;  // the provider's
  Node last;
  NodeId last_id;
  std::vector<std::string> results;
  std::vector<std::string> leaks;
  int capacity_changes = 0;
};

}  // namespace nodepool::drivers::openstack
