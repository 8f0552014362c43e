#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "driver/driver.h"
#include "store/store.h"

namespace nodepool::testing {

// What a scripted provider does, and which calls it received: both a fake and a probe.
struct Script {
  // What a launch throws; called once per launch with the number of earlier launches.
  std::function<std::optional<Error>(int launch)> launch_error;
  Duration launch_time{0};
  Duration delete_time{0};
  std::function<std::optional<Error>(int deletion)> delete_error;
  std::function<std::optional<Error>(int start)> start_error;
  std::function<void(const Node& node)> on_launch;  // at its end; may throw
  driver::QuotaInformation available = driver::QuotaInformation::Limit({});
  Resources need = {{"instances", 1}, {"cores", 2}};
  std::map<LabelName, Resources> needs;  // of labels that need something else
  bool launches_nodes = true;
  std::set<LabelName> not_ready;
  std::map<LabelName, Error> label_errors;  // thrown by the quota of a label
  std::set<NodeId> not_reusable;
  int looks = 0;
  std::function<Task<>()> look_again;  // none: it ends at once

  Duration start_time{0};
  std::optional<driver::ProviderFault> fault_at_start;  // reported
  // Of the provider that was created last:
  std::function<void()> capacity_changed;
  std::function<void(const std::optional<driver::ProviderFault>&)> report_fault;

  int providers = 0;
  int starts = 0;
  int stops = 0;
  std::vector<std::string> calls;  // "start 2": of the second provider that was created
  int launches = 0;
  int deletions = 0;
  int most_at_once = 0;
  std::set<NodeId> instances;  // machines that exist
  std::vector<NodeId> deleted;
  std::vector<NodeId> reused;
  int quota_invalidations = 0;

  const Resources& NeedOf(const LabelName& label) const {
    auto other = needs.find(label);
    return other == needs.end() ? need : other->second;
  }
};

class ScriptedHandler : public driver::NodeRequestHandler {
 public:
  ScriptedHandler(Loop& loop, Script& script) : loop_(loop), script_(script) {}

  Task<bool> CheckReusableNode(const store::StoredNode& node) override {
    co_return !script_.not_reusable.contains(node.id);
  }
  void NodeReused(const Node&) override {}

  Task<> Launch(store::LockedNode& node) override {
    int number = script_.launches++;
    script_.instances.insert(node.id());
    script_.most_at_once = std::max(script_.most_at_once, static_cast<int>(script_.instances.size()));
    Resources resources = script_.NeedOf(node.record().type.front());
    auto begin = [resources](Node& record) {
      record.resources = resources;
      record.external_id = "i-1";
      return store::Change::kWrite;
    };
    co_await node.Update(begin);
    if (script_.launch_time > Duration(0)) co_await loop_.SleepFor(script_.launch_time);
    if (script_.launch_error) {
      std::optional<Error> error = script_.launch_error(number);
      if (error) {
        script_.instances.erase(node.id());
        throw *error;
      }
    }
    if (script_.on_launch) script_.on_launch(node.record());
    WallTime now = loop_.Now();
    auto finish = [now](Node& record) {
      record.SetState(NodeState::kReady, now);
      record.interface_ip = "192.0.2.1";
      return store::Change::kWrite;
    };
    co_await node.Update(finish);
  }

 private:
  Loop& loop_;
  Script& script_;
};

class ScriptedProvider : public driver::Provider {
 public:
  ScriptedProvider(driver::ProviderEnvironment environment,
                   std::shared_ptr<const driver::ProviderConfig> config, Script& script)
      : environment_(std::move(environment)), config_(std::move(config)), script_(script) {
    script_.capacity_changed = environment_.capacity_changed;
    script_.report_fault = environment_.report_fault;
    number_ = ++script_.providers;
  }

  const driver::ProviderConfig& config() const override { return *config_; }
  Task<> Start() override {
    Note("start");
    std::optional<Error> error;
    if (script_.start_error) error = script_.start_error(script_.starts);
    ++script_.starts;
    if (error) throw *error;
    if (script_.start_time > Duration(0)) co_await environment_.loop.SleepFor(script_.start_time);
    if (script_.fault_at_start) environment_.report_fault(script_.fault_at_start);
    Note("started");
  }
  void Idle() override { Note("idle"); }
  Task<> Stop() override {
    Note("stop");
    ++script_.stops;
    co_return;
  }
  bool launches_nodes() const override { return script_.launches_nodes; }
  driver::Readiness LabelReady(const driver::LabelConfig& label) override {
    return script_.not_ready.contains(label.name) ? driver::Readiness::kNotReady : driver::Readiness::kReady;
  }
  driver::QuotaInformation AvailableQuota() override { return script_.available; }
  driver::QuotaInformation QuotaForLabel(const driver::LabelConfig& label) override {
    if (auto error = script_.label_errors.find(label.name); error != script_.label_errors.end())
      throw error->second;
    return driver::QuotaInformation::Amount(script_.NeedOf(label.name));
  }
  Task<> LookAgain() override {
    ++script_.looks;
    if (script_.look_again) co_await script_.look_again();
  }
  void InvalidateQuota() override { ++script_.quota_invalidations; }
  std::unique_ptr<driver::NodeRequestHandler> RequestHandler(std::shared_ptr<const driver::PoolConfig>,
                                                             const store::StoredRequest&) override {
    return std::make_unique<ScriptedHandler>(environment_.loop, script_);
  }
  Task<> DeleteResources(const NodeId& id, const Node&) override {
    NodeId node = id;
    int number = script_.deletions++;
    if (script_.delete_time > Duration(0)) co_await environment_.loop.SleepFor(script_.delete_time);
    std::optional<Error> error;
    if (script_.delete_error) error = script_.delete_error(number);
    if (error) throw *error;
    script_.instances.erase(node);
    script_.deleted.push_back(node);
  }
  Task<> CleanupLeakedResources() override { co_return; }

  driver::ProviderEnvironment& environment() { return environment_; }

 private:
  void Note(std::string call) { script_.calls.push_back(call + " " + std::to_string(number_)); }

  driver::ProviderEnvironment environment_;
  std::shared_ptr<const driver::ProviderConfig> config_;
  Script& script_;
  int number_ = 0;
};

// A driver whose providers each follow a script, selected by provider name. The scripts belong to the test
// and outlive the driver.
class ScriptedDriver : public driver::Driver {
 public:
  explicit ScriptedDriver(std::map<ProviderName, Script>& scripts) : scripts_(scripts) {}
  std::string_view name() const override { return "scripted"; }
  const config::Schema& ProviderSchema() const override { return schema_; }
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection&,
                                                                   config::Config&) override {
    throw Error(Verdict::kInvalid, "scripted providers are made by the test");
  }
  std::unique_ptr<driver::Provider> CreateProvider(
      driver::ProviderEnvironment environment,
      std::shared_ptr<const driver::ProviderConfig> config) override {
    Script& script = scripts_[config->name];
    return std::make_unique<ScriptedProvider>(std::move(environment), std::move(config), script);
  }

 private:
  std::map<ProviderName, Script>& scripts_;
  config::Schema schema_ = config::Schema::Any();
};

}  // namespace nodepool::testing
