#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "driver/cloud/adapter.h"
#include "driver/records_environment.h"
#include "drivers/metastatic/backing_nodes.h"
#include "drivers/metastatic/metastatic_config.h"

namespace nodepool::drivers {

// Cuts nodes of other providers into slots, which are handed out as nodes of this one
// (drivers.md 8).
//
// Slots and their users are stored in the records of the backing nodes, so that several launchers may run the
// provider at a time: a slot is taken by a write that fails if the record has changed (D-84). Requests for
// backing nodes are ephemeral: those of a launcher that died vanish, and nodes delivered for them become
// free.
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
  // A creation that has no slot yet.
  struct Waiter {
    NodeId node;
    const MetastaticLabel* label;  // the configuration's, as below
    RequestId request;             // the request whose node is for this one; empty: none yet
    bool is_alive = true;
    OneShot<Place> place;
  };
  // A request for a backing node, made here or adopted from a former process.
  struct BackingRequest {
    const MetastaticLabel* label;
    WallTime made;
    bool is_seen = false;  // in the cache
  };

  Task<> Run();
  Task<> Turn();
  Task<> FollowRequests();
  Task<bool> FollowRequest(RequestId id, BackingRequest request);
  Task<> Claim(RequestId id, BackingRequest request, NodeId node);
  Task<> FailRequest(RequestId id, std::string why);
  void DropRequest(const RequestId& id);
  Task<> AdoptOrphans();
  Task<> Serve();
  Task<bool> Occupy(NodeId backing, std::vector<std::shared_ptr<Waiter>> waiters);
  Task<> RequestMissing();
  Task<> WriteFailures();
  Task<> ReleaseIdle();
  Task<> Sweep();
  Task<> Vacate(NodeId backing, NodeId user);
  Task<> WithdrawUnused();

  Task<driver::cloud::Instance> Describe(Place place, NodeId user,
                                         std::map<std::string, std::string> metadata);
  std::vector<std::shared_ptr<Waiter>> WaitingFor(const MetastaticLabel& label) const;
  int WaitingFor(const RequestId& request) const;
  void Leave(const std::shared_ptr<Waiter>& waiter);

  driver::cloud::AdapterEnvironment environment_;
  const driver::RecordsEnvironment& records_;
  std::string owner_;
  log::Logger logger_{"nodepool.driver.metastatic.MetastaticAdapter"};
  BackingNodes backing_nodes_;
  std::vector<std::shared_ptr<Waiter>> waiters_;  // in order of arrival
  std::map<RequestId, BackingRequest> requests_;
  std::set<RequestId> orphans_;
  std::map<NodeId, NodeId> missing_;  // users without a record in the last sweep, with their backing nodes
  bool is_sweep_due_ = false;
  Event wake_{"nodes, requests or creations"};
  Subscription node_watch_, request_watch_;
  TaskGroup background_;
};

}  // namespace nodepool::drivers
