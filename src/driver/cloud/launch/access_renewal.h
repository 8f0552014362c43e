#pragma once

#include <set>

#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/provider_environment.h"
#include "store/records.h"

namespace nodepool::driver::cloud {

// Renews the access of ready nodes before it ends, in their records. A node whose access would end too soon
// for a user, and cannot be renewed, is marked for deletion. Nodes that a client has are left alone: their
// records are the client's.
class AccessRenewal {
 public:
  // Everything outlives this.
  AccessRenewal(const ProviderEnvironment& environment, Adapter& adapter, const ProviderConfig& config)
      : environment_(environment), adapter_(adapter), config_(config) {}

  // Once over all ready nodes of the provider.
  Task<> Run();

 private:
  Task<> Check(store::StoredNode node);
  Task<> Renew(store::StoredNode node, NodeAccess access);
  Task<> MarkForDeletion(store::StoredNode node);

  const ProviderEnvironment& environment_;
  Adapter& adapter_;
  const ProviderConfig& config_;
  log::Logger logger_{"nodepool.StateMachineProvider." + config_.name.value};
  std::set<NodeId> failed_;  // whose renewal failed, and was logged
};

}  // namespace nodepool::driver::cloud
