#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "async/deadline.h"
#include "async/testing/virtual_time.h"
#include "base/metrics.h"
#include "runners/runners.h"
#include "runners/testing/fake_github.h"
#include "runners/testing/fake_nodes.h"
#include "store/store.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::runners {

// Daemons, a GitHub, nodes and a pool that serves requests, in one process and in virtual time.
class RunnersTest : public ::testing::Test {
 protected:
  using Job = testing::FakeGithub::Job;

  struct Daemon {
    std::string name;
    std::unique_ptr<zk::Client> client;
    std::unique_ptr<nodepool::testing::FaultyZk> faulty;
    std::unique_ptr<Runners> runners;
    std::shared_ptr<testing::FakeConnection> connection;
    bool is_dead = false;
    testing::FakeConnection::Check check;  // of its calls; none: all succeed
  };

  RunnersTest() {
    time_.RunUntil([this] { return pool_client_->state() == zk::SessionState::kConnected; });
    zk_.OnWrite([this](std::int64_t, const zk::WatchEvent&) { written_.Set(); });
    pool_tasks_.Spawn("serve requests", ServeRequests());
  }
  void TearDown() override {
    while (!daemons_.empty()) StopDaemon(*daemons_.back());
    time_.Run(nodes_.Stop());
    time_.Run(pool_tasks_.Stop());
    time_.Run(pool_client_->Close());
  }

  static config::RunnerService Service(std::vector<config::RunnerSet> sets) {
    return {.name = "octo", .url = "https://github.com/octo", .sets = std::move(sets)};
  }
  static config::RunnerSet Set(std::string name = "small", std::int64_t max = 4) {
    return {.name = name, .labels = {name}, .node_label = LabelName("small"), .max_runners = max};
  }

  Daemon& StartDaemon(const std::string& name = "np01") {
    auto made = std::make_unique<Daemon>();
    Daemon& daemon = *made;
    daemon.name = name;
    daemon.client = zk_.Connect();
    daemon.faulty = std::make_unique<nodepool::testing::FaultyZk>(*daemon.client);
    auto check = [&daemon](const std::string& call, testing::FakeConnection::Moment moment) {
      if (daemon.is_dead) throw Error(Verdict::kRetry, "the daemon is dead");
      if (daemon.check) daemon.check(call, moment);
    };
    daemon.connection = std::make_shared<testing::FakeConnection>(time_.loop(), github_, check);
    auto connect = [&daemon](const config::RunnerService&, const store::RunnerCache&) {
      return daemon.connection;
    };
    daemon.runners =
        std::make_unique<Runners>(time_.loop(), random_, metrics_, *daemon.faulty, nodes_, connect, name);
    daemons_.push_back(std::move(made));
    time_.RunUntil([&] { return daemon.client->state() == zk::SessionState::kConnected; });
    time_.Run(daemon.runners->Start(services_));
    return daemon;
  }
  void StopDaemon(Daemon& daemon) {
    time_.Run(daemon.runners->Stop());
    time_.Run(daemon.client->Close());
    std::erase_if(daemons_, [&](const auto& each) { return each.get() == &daemon; });
  }
  // It does nothing any more, here and at the service; its sessions with nodes end; ZooKeeper notices after a
  // while.
  void Die(Daemon& daemon) {
    daemon.is_dead = true;
    daemon.faulty->FailWhen([](const auto&) { return nodepool::testing::FaultyZk::Fault::kBefore; });
    daemon.faulty->SetError(Error(Verdict::kLostSession, "the daemon is dead"));
  }
  void Bury(Daemon& daemon) {
    zk_.ExpireSession(*daemon.client);
    nodes_.BreakSessions();
    StopDaemon(daemon);
  }

  template <class Predicate>
  bool Await(Predicate predicate, Duration limit = std::chrono::minutes(10)) {
    return time_.RunUntil(predicate, limit);
  }
  bool AwaitAllDone(Duration limit = std::chrono::minutes(30)) {
    return Await([this] { return github_.AllDone(); }, limit);
  }
  std::vector<std::string> Children(const std::string& path) {
    zk::Result<zk::Children> children = zk_.tree().GetChildren(path);
    return children ? children->names : std::vector<std::string>();
  }
  std::string Data(const std::string& path) {
    zk::Result<zk::NodeData> node = zk_.tree().Get(path);
    return node ? node->data : "";
  }
  RunnerSetRecord SetRecord(const std::string& name = "small") {
    return ParseRunnerSetRecord(Data("/nodepool/runners/sets/octo/" + name)).value_or(RunnerSetRecord());
  }
  std::vector<RunnerRun> Runs() {
    std::vector<RunnerRun> runs;
    for (const std::string& id : Children("/nodepool/runners/runs")) {
      Expected<RunnerRun> run = ParseRunnerRun(Data("/nodepool/runners/runs/" + id));
      if (run) runs.push_back(*run);
    }
    return runs;
  }
  // Nothing is left of runs: no record, lease, request, node, registration or process.
  bool IsClean() {
    for (const char* path :
         {"/nodepool/runners/runs", "/nodepool/leases", "/nodepool/requests", "/nodepool/nodes"}) {
      if (!Children(path).empty()) return false;
    }
    return github_.runners().empty() && nodes_.running() == 0;
  }
  std::string WhatIsLeft() {
    std::string text;
    for (const char* path :
         {"/nodepool/runners/runs", "/nodepool/leases", "/nodepool/requests", "/nodepool/nodes"}) {
      for (const std::string& child : Children(path))
        text += std::string(path) + "/" + child + " " + Data(std::string(path) + "/" + child) + "\n";
    }
    for (const auto& [id, runner] : github_.runners()) text += "registration of " + runner.name + "\n";
    return text + std::to_string(nodes_.running()) + " processes\n";
  }
  int MostStarts() const {
    int most = 0;
    for (const auto& [request, job] : github_.jobs()) most = std::max(most, job.times_started);
    return most;
  }
  std::size_t node_count() { return Children("/nodepool/nodes").size(); }

  nodepool::testing::VirtualTime time_;
  SeededRandom random_{1};
  metrics::Prometheus prometheus_;
  metrics::Metrics metrics_{nullptr, &prometheus_};
  nodepool::testing::MemoryZk zk_{time_.loop()};
  testing::FakeGithub github_{time_.loop()};
  testing::FakeNodes nodes_{time_.loop(), github_};
  std::vector<config::RunnerService> services_ = {Service({Set()})};
  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::size_t max_nodes_ = 100;
  std::size_t most_nodes_ = 0;
  std::size_t nodes_made_ = 0;
  bool pool_fails_ = false;

 private:
  // Whenever something was written; also from time to time, since a test may let more nodes exist.
  Task<> ServeRequests() {
    for (;;) {
      written_.Reset();
      co_await Attempt(ServeOnce());
      co_await time_.loop().SleepFor(std::chrono::milliseconds(100));
      SteadyTime latest = time_.loop().SteadyNow() + std::chrono::seconds(5);
      co_await EndsBy(time_.loop(), latest, "a write", written_.Wait());
    }
  }
  Task<> ServeOnce() {
    for (const std::string& id : Children("/nodepool/nodes")) {
      Expected<Node> node = ParseNode(Data("/nodepool/nodes/" + id), time_.loop().Now());
      if (node && node->state == NodeState::kUsed) co_await pool_.tree.DeleteAll("/nodepool/nodes/" + id);
    }
    for (const std::string& id : Children("/nodepool/leases")) co_await ServeLease(LeaseId(id));
    for (const std::string& id : Children("/nodepool/requests")) co_await SweepRequest(RequestId(id));
    most_nodes_ = std::max(most_nodes_, node_count());
  }
  // As the keeper of leases does: notes what a daemon that died could not, and deletes what has no lease.
  Task<> SweepRequest(RequestId id) {
    Expected<NodeRequest> request =
        ParseNodeRequest(Data("/nodepool/requests/" + id.value), time_.loop().Now());
    std::optional<LeaseId> lease = request ? LeaseOf(*request) : std::nullopt;
    if (!lease) co_return;
    bool has_lease = zk_.tree().Exists("/nodepool/leases/" + lease->value).has_value();
    if (!has_lease) co_await pool_.leases.DeleteOrphan(id, *lease);
    auto note = [id](Lease& record) {
      if (!record.request.empty() || record.state != LeaseState::kWaiting) return store::Change::kSkip;
      record.request = id;
      return store::Change::kWrite;
    };
    if (has_lease) co_await pool_.leases.Update(*lease, note);
  }
  Task<> ServeLease(LeaseId id) {
    std::optional<store::StoredLease> lease = co_await pool_.leases.Read(id);
    if (!lease || lease->record.state != LeaseState::kWaiting || lease->record.request.empty()) co_return;
    std::string path = "/nodepool/requests/" + lease->record.request.value;
    Expected<NodeRequest> request = ParseNodeRequest(Data(path), time_.loop().Now());
    if (!request) co_return;
    if (pool_fails_) {
      request->state = RequestState::kFailed;
      co_await pool_.tree.client().Set(path, ToJson(*request), -1);
      co_await pool_.leases.FailUnserved(id);
      co_return;
    }
    if (request->state == RequestState::kRequested && node_count() < max_nodes_) {
      Node node;
      node.state = NodeState::kReady;
      node.allocated_to = lease->record.request;
      node.interface_ip = "127.0.0.1";
      node.connection_port = boost::json::value(22);
      node.username = "runner";
      NodeId made = co_await pool_.nodes.Create(node);
      ++nodes_made_;
      request->state = RequestState::kFulfilled;
      request->nodes = {made};
      co_await pool_.tree.client().Set(path, ToJson(*request), -1);
    }
    if (request->state == RequestState::kFulfilled) co_await pool_.leases.Take(id);
  }

 protected:
  std::unique_ptr<zk::Client> pool_client_ = zk_.Connect();
  store::Store pool_{time_.loop(), *pool_client_, random_};

 private:
  Event written_{"a write"};
  TaskGroup pool_tasks_{time_.loop(), log::Logger("test")};
};

}  // namespace nodepool::runners
