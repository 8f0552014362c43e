#pragma once

#include <map>
#include <set>
#include <string>

#include "async/event.h"
#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/provider.h"

namespace nodepool::driver::cloud {

// Finds nodes whose machines the cloud took away. A ready node that no request has is marked for
// deletion; of a node in use it is logged, and noted in the record if that has no comment yet.
//
// It counts what two checks in a row find; a check that cannot read the cloud finds nothing.
class MissingMachines {
 public:
  MissingMachines(const ProviderEnvironment& environment, Adapter& adapter, const ProviderConfig& config)
      : environment_(environment), adapter_(adapter), config_(config) {}

  // One check. Throws when the adapter cannot answer.
  Task<> Check();

  // The cloud announced that it takes a machine away.
  void Announce() { announced_.Set(); }
  // Checks twice after each announcement, until it is cancelled.
  Task<> FollowAnnouncements();

 private:
  using Machines = std::map<NodeId, boost::json::value>;  // external ids

  Machines Candidates() const;
  Task<Machines> Missing(Machines candidates);
  Task<> Handle(NodeId id, boost::json::value external_id);
  Task<> MarkForDeletion(NodeId id, boost::json::value external_id);
  Task<> NoteInUse(NodeId id, boost::json::value external_id);

  const ProviderEnvironment& environment_;
  Adapter& adapter_;
  const ProviderConfig& config_;
  log::Logger logger_{"nodepool.StateMachineProvider." + config_.name.value};
  Machines seen_;           // missing at the last check
  std::set<NodeId> noted_;  // in use and missing, logged already
  bool is_checking_ = false;
  Event announced_{"machines that the cloud takes away"};
};

}  // namespace nodepool::driver::cloud
