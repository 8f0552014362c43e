#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "async/testing/virtual_time.h"
#include "driver/cloud/cloud_provider.h"
#include "driver/records_environment.h"
#include "driver/refusal.h"
#include "drivers/kubernetes/kubernetes_adapter.h"
#include "drivers/kubernetes/testing/kubernetes_imposter.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::drivers::kubernetes {

// A runner without programs.
class NoRunner : public process::Runner {
 public:
  Task<process::Exit> Run(process::Command) override { throw Error(Verdict::kInvalid, "no programs here"); }
};

inline Connection ImposterConnection() {
  Connection connection;
  connection.server = "https://cluster";
  connection.ca_pem = "authority";
  connection.user.token = "own token";
  return connection;
}

// The means to reach an imposter; `connection` is read when credentials are needed.
inline Means MeansFor(Loop& loop, nodepool::testing::KubernetesImposter& imposter,
                      const Connection& connection) {
  Means means;
  means.http = std::make_unique<nodepool::testing::KubernetesImposterClient>(loop, imposter);
  means.runner = std::make_unique<NoRunner>();
  auto read = [](const Connection& found) -> Task<FilesRead> {
    FilesRead files{found, ""};
    co_return files;
  };
  means.read_files = [&connection, read] { return read(connection); };
  return means;
}

// A provider of one of the three drivers with an imposter, in virtual time.
class KubernetesTest : public ::testing::Test, protected driver::ProviderObserver {
 protected:
  void SetUp() override {
    nodes.Start();
    images.Start();
    time.Run(nodes.WaitSynced());
    time.Run(images.WaitSynced());
    config->name = ProviderName("cluster");
    config->context = "ci";
    config->launch_timeout = std::chrono::seconds(300);
    auto made = std::make_shared<KubernetesLabel>();
    made->name = LabelName("pod-small");
    made->image = "debian:12";
    made->host_key_checking = false;
    made->connection.connection_type = "kubectl";
    made->need = {{"instances", 1}, {"cores", 0}, {"ram", 0}};
    label = made.get();
    auto main = std::make_shared<driver::PoolConfig>();
    main->name = PoolName("main");
    main->Offer(made);
    pool = main.get();
    config->pools[main->name] = main;
  }

  void TearDown() override {
    if (provider) time.Run(provider->Stop(), std::chrono::hours(3));
    time.Run(nodes.Stop());
    time.Run(images.Stop());
    time.Run(client->Close());
  }

  void Start(Kind kind = Kind::kKubernetes) {
    config->kind = kind;
    driver::ProviderEnvironment environment{
        time.loop(), random, blocking_pool, records, [this] { ++capacity_changes; }, this};
    environment.report_fault = [this](const std::optional<driver::ProviderFault>& fault) {
      faults.push_back(fault ? fault->cause : "");
    };
    auto made =
        std::make_unique<KubernetesAdapter>(environment, config, MeansFor(time.loop(), imposter, connection));
    adapter = made.get();
    provider = driver::cloud::MakeCloudProvider(std::move(environment), config, std::move(made), nullptr);
    time.Run(provider->Start());
    imposter.ClearCalls();
  }

  Task<> LaunchNode(Node& record, NodeId& id) {
    store::StoredRequest request;
    request.id = RequestId("100-0000000001");
    request.record = request_record;
    request.record.node_types = {label->name};
    auto handler = provider->RequestHandler(config->pools.begin()->second, request);
    Node fresh;
    fresh.SetState(NodeState::kInit, time.loop().Now());
    fresh.provider = config->name;
    fresh.pool = pool->name;
    fresh.type = {label->name};
    co_await handler->SetNodeMetadata(fresh);
    auto change = [this](Node& node) {
      node.SetState(NodeState::kBuilding, time.loop().Now());
      return store::Change::kWrite;
    };
    store::LockedNode node = co_await store.nodes.CreateLocked(std::move(fresh), change);
    id = node.id();
    std::exception_ptr error;
    try {
      co_await handler->Launch(node);
    } catch (...) {
      error = std::current_exception();
    }
    record = node.record();
    co_await node.Unlock();
    if (error) std::rethrow_exception(error);
  }
  void Launch() { time.Run(LaunchNode(last, last_id), std::chrono::hours(10)); }
  std::string LaunchFails() {
    try {
      Launch();
    } catch (const Error& error) {
      last_verdict = error.verdict();
      auto refusal = dynamic_cast<const driver::Refusal*>(&error);
      last_refused = refusal == nullptr ? std::set<std::string>() : refusal->resources();
      return error.message();
    }
    ADD_FAILURE() << "the launch succeeded";
    return "";
  }
  void Delete() { time.Run(provider->DeleteResources(last_id, last), std::chrono::hours(1)); }
  boost::json::object Port() const { return last.connection_port.value().as_object(); }
  std::string Namespace() const { return Port().at("namespace").as_string().c_str(); }

  void LaunchAttemptEnded(const driver::LaunchOutcome& outcome) override {
    results.push_back(outcome.result);
  }
  void LeakedResourcesDeleted(const ProviderName&, const std::string& kind, int count) override {
    leaks.push_back(std::to_string(count) + " " + kind);
  }

  nodepool::testing::VirtualTime time;
  nodepool::testing::KubernetesImposter imposter{time.loop()};
  nodepool::testing::MemoryZk zk{time.loop()};
  std::unique_ptr<zk::Client> client = zk.Connect();
  SeededRandom random{1};
  BlockingPool blocking_pool{0};
  store::Store store{time.loop(), *client, random};
  store::NodeCache nodes{time.loop(), *client};
  store::ImageCache images{time.loop(), *client};
  driver::RecordsEnvironment records{store, nodes, images};
  std::shared_ptr<KubernetesConfig> config = std::make_shared<KubernetesConfig>();
  Connection connection = ImposterConnection();
  KubernetesLabel* label = nullptr;
  driver::PoolConfig* pool = nullptr;
  std::unique_ptr<driver::Provider> provider;
  KubernetesAdapter* adapter = nullptr;  // the provider's
  NodeRequest request_record;
  Node last;
  NodeId last_id;
  Verdict last_verdict = Verdict::kFail;
  std::set<std::string> last_refused;  // the resources that a refusal names
  std::vector<std::string> results;
  std::vector<std::string> leaks;
  std::vector<std::string> faults;  // as reported; empty: none
  int capacity_changes = 0;
};

}  // namespace nodepool::drivers::kubernetes
