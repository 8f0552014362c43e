#include "drivers/static/static_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/attempt.h"
#include "async/cleanup.h"
#include "async/task_group.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/cloud/own_types.h"
#include "driver/operator_tools.h"
#include "drivers/static/static_config.h"
#include "drivers/static/static_provider.h"
#include "net/tcp_probe.h"

namespace nodepool::drivers {

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
