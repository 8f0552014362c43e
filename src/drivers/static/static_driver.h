#pragma once

#include <map>
#include <memory>
#include <optional>

#include "async/task_group.h"
#include "base/subscription.h"
#include "driver/driver.h"
#include "drivers/static/static_host.h"

namespace nodepool::drivers {

// Keeps the records of its hosts consistent with the configuration. Event-driven: a record that vanishes or
// is to be deleted wakes its host at once.
class StaticProvider : public driver::Provider {
 public:
  StaticProvider(driver::ProviderEnvironment environment, std::shared_ptr<const StaticConfig> config,
                 HostContact contact);

  const driver::ProviderConfig& config() const override { return *config_; }

  Task<> Start() override;
  void Idle() override;
  Task<> Stop() override;

  bool launches_nodes() const override { return false; }
  std::unique_ptr<driver::NodeRequestHandler> RequestHandler(std::shared_ptr<const driver::PoolConfig> pool,
                                                             const store::StoredRequest& request) override;
  // Does nothing: a node has no resources to delete.
  Task<> DeleteResources(const NodeId& id, const Node& node) override;
  // Wakes every host, including those that could not be used so far.
  Task<> CleanupLeakedResources() override;

  // Whether the node can be handed out. A free node of a host that does not answer is withdrawn
  // (drivers.md 7.7); surplus nodes are not handed out.
  Task<bool> CheckAlive(NodeId id, HostIdentity identity);

 private:
  Task<> RunHosts();
  Task<> DeregisterUnknown();
  void OnNodeChange(const NodeId& id, const store::StoredNode* before, const store::StoredNode* after);
  // Reports how many hosts cannot be used, and which.
  void ReportHosts();
  StaticHost* Find(const HostIdentity& identity);

  driver::ProviderEnvironment environment_;
  std::shared_ptr<const StaticConfig> config_;
  HostContact contact_;
  log::Logger logger_{"nodepool.driver.static.StaticNodeProvider"};
  HostRecords records_;
  std::map<HostIdentity, std::unique_ptr<StaticHost>> hosts_;
  TaskGroup background_;
  Subscription node_watch_;
};

// Driver `static`: machines that exist already. Their records are registered by the
// provider, not launched for requests (drivers.md 7).
class StaticDriver : public driver::Driver {
 public:
  // By default hosts are reached over the network.
  explicit StaticDriver(std::optional<HostContact> contact = std::nullopt);

  std::string_view name() const override { return "static"; }
  const config::Schema& ProviderSchema() const override;
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override;
  std::unique_ptr<driver::Provider> CreateProvider(
      driver::ProviderEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) override;
  std::unique_ptr<driver::OperatorTools> CreateOperatorTools(
      driver::ToolsEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) override;

 private:
  std::optional<HostContact> contact_;
};

}  // namespace nodepool::drivers
