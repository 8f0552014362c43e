#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/scope_exit.h"
#include "base/subscription.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/scripted_adapter_for_test.h"
#include "driver/cloud/testing/provider_fixture.h"

namespace nodepool::driver::cloud {

// A provider around a scripted cloud.
class ProviderTest : public CloudFixture<ProviderConfig, LabelConfig, PoolConfig, ScriptedAdapter> {
 protected:
  ProviderTest() : CloudFixture("cloud", "scripted") {
    label->cloud_image = "debian";
    label->connection.username = "zuul";
    pool->node_attributes = boost::json::object{{"executor-zone", "north"}};
    request_record.requestor = "tester";
  }

  void SetUp() override {
    CloudFixture::SetUp();
    watch_ = nodes.OnChange(
        [this](const NodeId&, const store::StoredNode* before, const store::StoredNode* after) {
          if (after == nullptr) return;
          bool is_written = before == nullptr || before->revision.version != after->revision.version;
          if (is_written) history.push_back(Summary(after->record));
        });
  }

  void TearDown() override {
    if (provider) time.Run(provider->Stop(), std::chrono::hours(3));
    watch_.Reset();
    CloudFixture::TearDown();
  }

  void StartProvider() {
    auto make = [this](const AdapterEnvironment& of_adapter) {
      auto scripted = std::make_unique<ScriptedAdapter>(of_adapter);
      cloud = scripted.get();
      if (prepare_cloud) prepare_cloud(*cloud);
      return scripted;
    };
    ProviderEnvironment environment = Environment();
    environment.report_fault = [this](const std::optional<ProviderFault>& fault) {
      fault_reports.push_back(fault);
    };
    environment.runner = runner;
    provider = MakeCloudProvider(std::move(environment), config, make,
                                 [this](std::string host, int port, bool wants_keys, SteadyTime deadline) {
                                   scanned_port = port;
                                   return Scan(std::move(host), wants_keys, deadline);
                                 });
    time.Run(provider->Start());
  }

  Task<std::vector<std::string>> Scan(std::string host, bool wants_keys, SteadyTime deadline) {
    ++scans;
    most_scans_at_once = std::max(most_scans_at_once, ++scans_under_way);
    ScopeExit ended([this] { --scans_under_way; });
    bool fails = silent_hosts.contains(host) || (failing_scans > 0 && failing_scans-- > 0);
    co_await time.loop().SleepUntil(fails ? deadline : time.loop().SteadyNow() + std::chrono::seconds(1));
    if (fails) throw Error(Verdict::kTimedOut, "timeout connecting");
    std::vector<std::string> keys;
    if (wants_keys) keys = {host_key};
    co_return keys;
  }

  std::unique_ptr<NodeRequestHandler> MakeHandler() {
    store::StoredRequest request;
    request.id = RequestId("100-0000000001");
    request.record = request_record;
    return provider->RequestHandler(config->pools.at(pool->name), request);
  }
  Task<> LaunchNode() { return LaunchNode(MakeHandler()); }
  Task<> LaunchNode(std::shared_ptr<NodeRequestHandler> handler) {
    return CloudFixture::LaunchNode(std::move(handler), last, last_id);
  }

  // The verdict of a launch that is expected to fail.
  Verdict LaunchFails() {
    Outcome<> launched = time.Run(Attempt(LaunchNode()), std::chrono::hours(5));
    if (!launched) return launched.error().verdict();
    ADD_FAILURE() << "the launch succeeded";
    return Verdict::kFail;
  }

  Node Stored() { return time.Run(store.nodes.Read(last_id))->record; }

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
  void CandidateTried(const CandidateOutcome& outcome) override {
    candidates.push_back(outcome.candidate + (outcome.is_created ? " created" : " lacks capacity"));
  }
  void MachineTaken(const ProviderName&, bool is_in_use) override {
    taken.push_back(is_in_use ? "in use" : "ready");
  }

  void ReadyNodeFailed(const ProviderName&, std::string_view reason) override {
    ++failed_ready_nodes;
    last_failure_reason = reason;
  }

  std::vector<std::string> Results() const {
    std::vector<std::string> results;
    for (const LaunchOutcome& outcome : outcomes) results.push_back(outcome.result);
    return results;
  }

  std::function<void(ScriptedAdapter&)> prepare_cloud;
  ScriptedAdapter* cloud = nullptr;  // the provider's

  std::vector<std::optional<ProviderFault>> fault_reports;
  int scans = 0;
  int failing_scans = 0;
  std::set<std::string> silent_hosts;  // whose scans fail
  int scans_under_way = 0;
  int most_scans_at_once = 0;
  std::string host_key = "ssh-ed25519 AAAA";
  int scanned_port = 0;
  std::vector<std::string> history;
  std::vector<LaunchOutcome> outcomes;
  std::vector<std::string> candidates;
  std::vector<std::string> taken;
  int failed_ready_nodes = 0;
  std::string last_failure_reason;    // of them
  process::Runner* runner = nullptr;  // of the provider that is started next

 private:
  Subscription watch_;
};

}  // namespace nodepool::driver::cloud
