#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "async/testing/virtual_time.h"
#include "driver/cloud/cloud_provider.h"
#include "driver/cloud/metadata.h"
#include "driver/records_environment.h"
#include "drivers/aws/aws_adapter.h"
#include "drivers/aws/testing/ec2_imposter.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::drivers::aws {

// A provider of driver aws with an EC2 imposter, in virtual time.
class AwsTest : public ::testing::Test, protected driver::ProviderObserver {
 protected:
  void SetUp() override {
    nodes.Start();
    images.Start();
    time.Run(nodes.WaitSynced());
    time.Run(images.WaitSynced());
    auto shape = std::make_shared<AwsLabel>();
    shape->name = LabelName("small");
    shape->cloud_image = "debian";
    shape->instance_types = {"t3.medium"};
    shape->key_name = "zuul";
    label = shape.get();
    auto made_pool = std::make_shared<AwsPool>();
    made_pool->name = PoolName("main");
    made_pool->Offer(shape);
    pool = made_pool.get();
    config->name = ProviderName("ec2");
    config->driver = "aws";
    config->rate = 0;
    config->pools[made_pool->name] = made_pool;
    AwsCloudImage& image = config->cloud_images["debian"];
    image.name = "debian";
    image.external_name = "ami-1";
    image.is_id = true;
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
    environment.report_fault = [this](const std::optional<driver::ProviderFault>& fault) {
      faults.push_back(fault ? fault->cause : "");
    };
    Variables variables{{"AWS_ACCESS_KEY_ID", "KEY"},
                        {"AWS_SECRET_ACCESS_KEY", "top-secret"},
                        {"AWS_CONFIG_FILE", "/nonexistent"},
                        {"AWS_SHARED_CREDENTIALS_FILE", "/nonexistent"}};
    Account account = ResolveAccount({}, variables, "us-west-2", std::nullopt);
    auto http = std::make_unique<testing::Ec2ImposterClient>(ec2);
    auto made = std::make_unique<AwsAdapter>(environment, config, account, variables, std::move(http));
    adapter = made.get();
    provider = driver::cloud::MakeCloudProvider(std::move(environment), config, std::move(made), nullptr);
    time.Run(provider->Start());
    ec2.calls.clear();
  }

  Task<> LaunchNode() {
    store::StoredRequest request;
    request.id = RequestId("100-0000000001");
    request.record = request_record;
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
    Outcome<> launched = co_await Attempt(handler->Launch(node));
    last = node.record();
    co_await node.Unlock();
    if (!launched) launched.error().Rethrow();
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

  // An instance that is there already.
  std::string AddInstance(std::map<std::string, std::string> tags, std::string type = "t3.medium") {
    std::string id = "i-foreign" + std::to_string(ec2.instances.size());
    ec2.instances[id].type = std::move(type);
    ec2.instances[id].tags = std::move(tags);
    return id;
  }
  // The number of instances that nobody has ended.
  int Living() {
    SteadyTime now = time.loop().SteadyNow();
    return static_cast<int>(
        std::ranges::count_if(ec2.instances, [now](const auto& one) { return now < one.second.ending; }));
  }
  void FailNext(std::string action, int status, std::string code, int times = 1, std::string message = "no") {
    ec2.faults.push_back({std::move(action), status, std::move(code), std::move(message), times});
  }

  void LaunchAttemptEnded(const driver::LaunchOutcome& outcome) override {
    results.push_back(outcome.result);
    if (!outcome.machine_type.empty()) machine_types.push_back(outcome.machine_type);
  }
  void LeakedResourcesDeleted(const ProviderName&, const std::string& kind, int count) override {
    leaks.push_back(std::to_string(count) + " " + kind);
  }

  testing::VirtualTime time;
  testing::Ec2Imposter ec2{time.loop()};
  testing::MemoryZk zk{time.loop()};
  std::unique_ptr<zk::Client> client = zk.Connect();
  SeededRandom random{1};
  BlockingPool blocking_pool{0};
  store::Store store{time.loop(), *client, random};
  store::NodeCache nodes{time.loop(), *client};
  store::ImageCache images{time.loop(), *client};
  driver::RecordsEnvironment records{store, nodes, images};
  std::shared_ptr<AwsConfig> config = std::make_shared<AwsConfig>();
  AwsLabel* label = nullptr;
  AwsPool* pool = nullptr;
  NodeRequest request_record;
  std::unique_ptr<driver::Provider> provider;
  AwsAdapter* adapter = nullptr;  // the provider's
  Node last;
  NodeId last_id;
  std::vector<std::string> results;
  std::vector<std::string> machine_types;  // of the machines that were created
  std::vector<std::string> leaks;
  std::vector<std::string> faults;  // reported; empty: none
  int capacity_changes = 0;
};

}  // namespace nodepool::drivers::aws
