#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/loop.h"
#include "base/scope_exit.h"
#include "base/subscription.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/testing/provider_fixture.h"

namespace nodepool::driver::cloud {

// A cloud that follows a test's script.
class ScriptedAdapter : public Adapter {
 public:
  struct Creation {
    Duration before_id = std::chrono::seconds(1);
    Duration after_id = std::chrono::seconds(1);
    std::optional<Error> fault_before_id;
    std::optional<Error> fault_after_id;
    std::optional<LaunchError::Kind> kind;  // of fault_after_id
  };

  explicit ScriptedAdapter(const AdapterEnvironment& environment)
      : framework(environment.framework), loop_(environment.loop) {}

  Framework& framework;

  // What creations do, in order; the last is repeated.
  std::deque<Creation> creations = {Creation()};
  std::vector<CreateParameters> requested;
  std::map<std::string, Instance> machines;  // by id
  std::vector<std::string> deleted;
  int failing_deletes = 0;
  Duration delete_duration = std::chrono::seconds(1);
  std::optional<Error> list_fault;
  std::optional<Error> outage;      // of all calls
  bool lists_all_machines = false;  // true: MissingMachines() is supported
  std::vector<AnnouncedEnd> announced;
  std::optional<Error> announcement_fault;
  std::vector<std::string> candidates;
  PoolName pool_of_deletion;  // that the last deletion got
  Resources limits = {{"instances", 10}};
  std::vector<Resource> resources;
  std::vector<std::string> deleted_resources;
  std::vector<std::optional<std::string>> zones = {std::nullopt};
  Duration zones_duration{0};
  AccessState access_state = AccessState::kLasts;
  std::optional<Error> renewal_fault;
  std::optional<QuotaInformation> others;  // none: ListInstances tells
  int lists_asked = 0;
  std::optional<Error> label_fault;
  int label_asked = 0;
  int quota_asked = 0;
  Duration quota_duration{0};
  int scan_failures_reported = 0;
  std::optional<std::string> console;
  std::optional<Duration> boot_timeout;  // of machines
  std::string address = "203.0.113.1";
  ConnectionOverrides connection;  // of machines
  std::optional<std::vector<std::string>> host_keys;
  std::optional<double> hourly_price;     // of machines
  std::optional<Verdict> deletion_fault;  // of resources

  Task<Instance> Create(MachineReport& machine, CreateParameters parameters) override {
    Creation script = creations.front();
    if (creations.size() > 1) creations.pop_front();
    requested.push_back(parameters);
    machine.SetState("creating");
    ThrowIfAway();
    co_await loop_.SleepFor(script.before_id);
    ThrowIfAway();
    if (script.fault_before_id) throw *script.fault_before_id;
    std::string id = "machine-" + std::to_string(++last_id_);
    machines[id] = Describe(id, parameters);
    boost::json::value external_id(id);
    co_await machine.SetExternalId(std::move(external_id));
    machine.SetState("booting");
    co_await loop_.SleepFor(script.after_id);
    ThrowIfAway();
    if (script.kind) throw LaunchError(*script.kind, "the machine is broken");
    if (script.fault_after_id) throw *script.fault_after_id;
    co_return machines.at(id);
  }

  std::vector<std::string> Candidates(const LabelConfig&, const PoolConfig&) override { return candidates; }

  Task<> Delete(MachineReport& machine, boost::json::value external_id) override {
    pool_of_deletion = machine.pool() ? machine.pool()->name : PoolName();
    std::string id(external_id.as_string());
    ThrowIfAway();
    if (failing_deletes > 0) {
      --failing_deletes;
      throw Error(Verdict::kFail, "cannot delete now");
    }
    co_await loop_.SleepFor(delete_duration);
    deleted.push_back(id);
    if (machines.erase(id) == 0) throw Error(Verdict::kNotFound, "no such machine");
  }

  std::optional<QuotaInformation> UsedByOthers() override { return others; }
  Task<std::vector<Instance>> ListInstances() override {
    ++lists_asked;
    ThrowIfAway();
    if (list_fault) throw *list_fault;
    std::vector<Instance> all;
    for (const auto& [id, machine] : machines) all.push_back(machine);
    co_return all;
  }
  Task<std::vector<boost::json::value>> MissingMachines(std::vector<boost::json::value> ids) override {
    if (lists_all_machines) return NotListed(std::move(ids));
    return Adapter::MissingMachines(std::move(ids));
  }
  Task<std::vector<AnnouncedEnd>> AnnouncedEnds(std::vector<boost::json::value>) override {
    if (announcement_fault) throw *announcement_fault;
    co_return announced;
  }
  Task<std::vector<Resource>> ListResources() override {
    if (list_fault) throw *list_fault;
    co_return resources;
  }
  Task<> DeleteResource(Resource resource) override {
    deleted_resources.push_back(resource.id);
    std::erase_if(resources, [&](const Resource& other) { return other.id == resource.id; });
    if (deletion_fault) throw Error(*deletion_fault, "the cloud does not delete it");
    co_return;
  }
  Task<AccessState> StateOfAccess(NodeAccess) override { co_return access_state; }
  Task<NodeAccess> RenewAccess(boost::json::value external_id, NodeAccess) override {
    if (renewal_fault) throw Error(*renewal_fault);
    boost::json::object port = {{"token", "renewed"}};
    co_return NodeAccess{std::move(port), std::move(external_id)};
  }
  Task<QuotaInformation> QuotaLimits() override {
    ++quota_asked;
    ThrowIfAway();
    if (quota_duration > Duration(0)) co_await loop_.SleepFor(quota_duration);
    Resources now = limits;
    co_return QuotaInformation::Limit(std::move(now));
  }
  QuotaInformation QuotaForLabel(const LabelConfig&) override {
    ++label_asked;
    if (label_fault) throw *label_fault;
    return QuotaInformation::Amount({{"cores", 2}, {"instances", 1}, {"ram", 1024}});
  }
  Task<std::vector<std::optional<std::string>>> AvailabilityZones() override {
    if (zones_duration > Duration(0)) co_await loop_.SleepFor(zones_duration);
    co_return zones;
  }
  Task<std::optional<std::string>> ConsoleLog(const LabelConfig&, boost::json::value) override {
    co_return console;
  }
  void NotifyNodescanFailure(const LabelConfig&, const boost::json::value&) override {
    ++scan_failures_reported;
  }

 private:
  void ThrowIfAway() const {
    if (outage) throw *outage;
  }
  Instance Describe(const std::string& id, const CreateParameters& parameters) const {
    Instance machine;
    machine.external_id = id;
    machine.interface_ip = address;
    machine.public_ipv4 = "203.0.113.1";
    machine.private_ipv4 = "10.0.0.1";
    machine.az = parameters.az.value_or("zone-of-the-cloud");
    machine.cloud = "scripted";
    machine.connection = connection;
    machine.host_keys = host_keys;
    machine.metadata = parameters.metadata;
    machine.quota = QuotaInformation::Amount({{"cores", 2}, {"instances", 1}, {"ram", 2048}});
    machine.boot_timeout = boot_timeout;
    machine.hourly_price = hourly_price;
    return machine;
  }

  Loop& loop_;
  int last_id_ = 0;
};

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
