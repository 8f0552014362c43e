#include "drivers/static/static_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/task.h"
#include "async/task_group.h"
#include "base/text.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/driver.h"
#include "drivers/static/static_config.h"
#include "net/tcp_probe.h"

namespace nodepool::drivers {

namespace {

class StaticHandler : public driver::NodeRequestHandler {
 public:
  explicit StaticHandler(StaticProvider& provider) : provider_(provider) {}

  Task<bool> CheckReusableNode(const store::StoredNode& node) override {
    return provider_.CheckAlive(node.id, IdentityOf(node.record));
  }

  Task<> Launch(store::LockedNode& node) override {
    throw Error(Verdict::kFail,
                "static nodes cannot be launched; node " + node.id().str() + " should not exist");
    co_return;
  }

 private:
  StaticProvider& provider_;
};

// "lab-1:22, lab-2:22, lab-3:22 and 4 more"
std::string SomeOf(const std::vector<std::string>& hosts) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> named(hosts.begin(), hosts.begin() + std::min(hosts.size(), kMost));
  std::string text = Join(named, ", ");
  return hosts.size() > kMost ? fmt::format("{} and {} more", text, hosts.size() - kMost) : text;
}

}  // namespace

StaticProvider::StaticProvider(driver::ProviderEnvironment environment,
                               std::shared_ptr<const StaticConfig> config, HostContact contact)
    : environment_(std::move(environment)),
      config_(std::move(config)),
      contact_(std::move(contact)),
      background_(environment_.loop, logger_) {
  for (const StaticPool* pool : driver::cloud::PoolsOf<StaticPool>(*config_)) {
    for (const StaticNode& node : pool->nodes) {
      auto host = std::make_unique<StaticHost>(environment_, *config_, *pool, node, contact_, records_,
                                               [this] { ReportHosts(); });
      HostIdentity identity = host->identity();
      hosts_.emplace(std::move(identity), std::move(host));  // of two entries the first is used
    }
  }
}

Task<> StaticProvider::Start() {
  auto on_change = [this](const NodeId& id, const store::StoredNode* before, const store::StoredNode* after) {
    OnNodeChange(id, before, after);
  };
  for (const NodeId& id : environment_.records.nodes.OfProvider(config_->name))
    records_.Follow(id, nullptr, environment_.records.nodes.Find(id));
  node_watch_ = environment_.records.nodes.OnChange(on_change);
  background_.Spawn("static hosts of " + config_->name.str(), RunHosts());
  co_return;
}

// Compares records with the configuration only when the cache is complete.
Task<> StaticProvider::RunHosts() {
  co_await environment_.records.nodes.WaitSynced();
  for (const auto& [identity, host] : hosts_)
    background_.Spawn("static host " + identity.ToString(), host->Run());
  co_await DeregisterUnknown();
}

Task<> StaticProvider::DeregisterUnknown() {
  std::vector<NodeId> unknown;
  for (const NodeId& id : environment_.records.nodes.OfProvider(config_->name)) {
    const store::StoredNode* node = environment_.records.nodes.Find(id);
    if (node != nullptr && Find(IdentityOf(node->record)) == nullptr) unknown.push_back(id);
  }
  for (const NodeId& id : unknown) {
    Outcome<> deregistered = co_await Attempt(Deregister(environment_.records.store, environment_.loop, id));
    if (!deregistered) {
      logger_.About(log::OfNode(id))
          .Warning("A node that is no longer configured stays registered: {}",
                   deregistered.error().message());
    }
  }
}

void StaticProvider::Idle() {
  for (const auto& [identity, host] : hosts_) host->Idle();
}

Task<> StaticProvider::Stop() {
  Idle();
  node_watch_.Reset();
  co_await background_.Stop();
}

std::unique_ptr<driver::NodeRequestHandler> StaticProvider::RequestHandler(
    std::shared_ptr<const driver::PoolConfig>, const store::StoredRequest&) {
  return std::make_unique<StaticHandler>(*this);
}

Task<> StaticProvider::DeleteResources(const NodeId&, const Node&) { co_return; }

Task<> StaticProvider::CleanupLeakedResources() {
  for (const auto& [identity, host] : hosts_) host->Wake();
  co_return;
}

Task<bool> StaticProvider::CheckAlive(NodeId id, HostIdentity identity) {
  StaticHost* host = Find(identity);
  if (host == nullptr || !host->HasSlot(id)) co_return false;
  bool is_alive = co_await host->IsAlive();
  if (!is_alive) co_await Deregister(environment_.records.store, environment_.loop, std::move(id));
  co_return is_alive;
}

void StaticProvider::OnNodeChange(const NodeId& id, const store::StoredNode* before,
                                  const store::StoredNode* after) {
  const store::StoredNode* node = before != nullptr ? before : after;
  if (node->record.provider != config_->name) return;
  records_.Follow(id, before, after);
  bool frees_slot = after == nullptr || after->record.state == NodeState::kDeleting;
  bool was_free = before != nullptr && before->record.is_free();
  bool may_be_excess = !frees_slot && !was_free && after->record.is_free();
  if (!frees_slot && !may_be_excess) return;
  if (StaticHost* host = Find(IdentityOf(node->record))) host->Wake();
}

void StaticProvider::ReportHosts() {
  std::vector<std::string> silent, refused;
  for (const auto& [identity, host] : hosts_) {
    if (host->fault() == nullptr) continue;
    bool is_wrong = host->fault()->verdict() == Verdict::kInvalid;
    (is_wrong ? refused : silent).push_back(fmt::format("{}:{}", identity.name, identity.port));
  }
  std::vector<std::string> notices;
  if (!silent.empty()) {
    notices.push_back(
        fmt::format("{} of {} hosts do not answer: {}", silent.size(), hosts_.size(), SomeOf(silent)));
  }
  if (!refused.empty()) {
    notices.push_back(fmt::format("{} of {} hosts are not as configured: {}", refused.size(), hosts_.size(),
                                  SomeOf(refused)));
  }
  environment_.report_notices(std::move(notices));
}

StaticHost* StaticProvider::Find(const HostIdentity& identity) {
  auto found = hosts_.find(identity);
  return found == hosts_.end() ? nullptr : found->second.get();
}

namespace {

HostContact NetworkContact(const driver::DriverEnvironment& environment) {
  auto resolve = [](std::string name) { return net::Resolve(std::move(name)); };
  return {driver::cloud::NetworkScan(environment), resolve};
}

class StaticTools : public driver::OperatorTools {
 public:
  StaticTools(Loop& loop, std::shared_ptr<const StaticConfig> config, HostContact contact)
      : loop_(loop), config_(std::move(config)), contact_(std::move(contact)) {}

  // All hosts at a time: each of those that are dead takes its time-out.
  Task<std::vector<std::string>> FindFaults() override {
    std::vector<std::string> faults;
    TaskGroup checks(loop_, log::Logger("nodepool.driver.static.StaticNodeProvider"));
    for (const auto& [identity, node] : Hosts())
      checks.Spawn("check static host " + identity.ToString(), Check(identity, *node, faults));
    auto stop = [&checks] { return checks.Stop(); };
    co_await WithCleanup(checks.Join(), stop);
    std::ranges::sort(faults);
    co_return faults;
  }
  // A node has no resources; a launcher registers its slot again.
  Task<> DeleteResources(const NodeId&, const Node&) override { co_return; }

 private:
  // Of two entries the first is used.
  std::map<HostIdentity, const StaticNode*> Hosts() const {
    std::map<HostIdentity, const StaticNode*> hosts;
    for (const StaticPool* pool : driver::cloud::PoolsOf<StaticPool>(*config_)) {
      for (const StaticNode& node : pool->nodes) hosts.emplace(IdentityOf(node), &node);
    }
    return hosts;
  }
  Task<> Check(HostIdentity identity, const StaticNode& node, std::vector<std::string>& faults) {
    Outcome<HostFindings> found = co_await Attempt(ContactHost(loop_, node, contact_));
    if (found) co_return;
    faults.push_back(fmt::format("host {} cannot be used: {}", identity.ToString(), found.error().message()));
  }

  Loop& loop_;
  std::shared_ptr<const StaticConfig> config_;
  HostContact contact_;
};

}  // namespace

StaticDriver::StaticDriver(std::optional<HostContact> contact) : contact_(std::move(contact)) {}

const config::Schema& StaticDriver::ProviderSchema() const { return StaticSchema(); }

std::shared_ptr<const driver::ProviderConfig> StaticDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return LoadStaticConfig(section, config);
}

std::unique_ptr<driver::Provider> StaticDriver::CreateProvider(
    driver::ProviderEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) {
  HostContact contact = contact_ ? *contact_ : NetworkContact(environment);
  return std::make_unique<StaticProvider>(std::move(environment), driver::cloud::As<StaticConfig>(config),
                                          std::move(contact));
}

std::unique_ptr<driver::OperatorTools> StaticDriver::CreateOperatorTools(
    driver::ToolsEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) {
  HostContact contact = contact_ ? *contact_ : NetworkContact(environment);
  return std::make_unique<StaticTools>(environment.loop, driver::cloud::As<StaticConfig>(config),
                                       std::move(contact));
}

}  // namespace nodepool::drivers
