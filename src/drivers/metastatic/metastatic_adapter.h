#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "driver/cloud/adapter.h"
#include "driver/records_environment.h"
#include "drivers/metastatic/backing_nodes.h"
#include "drivers/metastatic/backing_requests.h"
#include "drivers/metastatic/metastatic_config.h"

namespace nodepool::drivers {

// Cuts nodes of other providers into slots, which are handed out as nodes of this one
// (drivers.md 8).
//
// Slots and their users are stored in the records of the backing nodes, so that several launchers may run the
// provider at a time: a slot is taken by a write that fails if the record has changed (D-84).
class MetastaticAdapter : public driver::cloud::CloudAdapter<MetastaticConfig, MetastaticLabel> {
 public:
  // Everything in `environment`, and `records`, outlives the adapter.
  MetastaticAdapter(const driver::cloud::AdapterEnvironment& environment,
                    const driver::RecordsEnvironment& records,
                    std::shared_ptr<const driver::ProviderConfig> config);

  void Start() override;

  Task<driver::cloud::Instance> Create(driver::cloud::MachineReport& machine,
                                       driver::cloud::CreateParameters parameters) override;
  Task<> Delete(driver::cloud::MachineReport& machine, boost::json::value external_id) override;
  // Empty: there are no resources that could leak.
  Task<std::vector<driver::cloud::Instance>> ListInstances() override;
  // Called once a minute: sweeps for users that vanished without giving their slots back.
  Task<std::vector<driver::cloud::Resource>> ListResources() override;
  Task<> DeleteResource(driver::cloud::Resource resource) override;
  void NotifyNodescanFailure(const driver::LabelConfig& label,
                             const boost::json::value& external_id) override;
  Task<> Stop() override;

 private:
  Task<> Run();
  Task<> Turn();
  Task<> Serve();
  Task<bool> Occupy(NodeId backing, BackingRequests::Waiters waiters);
  Task<> WriteFailures();
  Task<> ReleaseIdle();
  Task<> Sweep();
  Task<> Vacate(NodeId backing, NodeId user);

  Task<driver::cloud::Instance> Describe(Place place, NodeId user,
                                         std::map<std::string, std::string> metadata);

  driver::cloud::AdapterEnvironment environment_;
  const driver::RecordsEnvironment& records_;
  std::string owner_;
  log::Logger logger_{"nodepool.driver.metastatic.MetastaticAdapter"};
  BackingNodes backing_nodes_;
  BackingRequests requests_;
  std::map<NodeId, NodeId> missing_;  // users without a record in the last sweep, with their backing nodes
  bool is_sweep_due_ = false;
  Event wake_{"nodes, requests or creations"};
  Subscription node_watch_, request_watch_;
  TaskGroup background_;
};

}  // namespace nodepool::drivers
