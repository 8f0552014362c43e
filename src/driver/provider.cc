#include "driver/provider.h"

namespace nodepool::driver {

QuotaInformation PoolConfig::Limit() const {
  Resources all = limits;
  all[resource::kInstances] = max_servers;
  return QuotaInformation::Limit(std::move(all));
}

Task<bool> NodeRequestHandler::CheckReusableNode(const store::StoredNode&) { co_return true; }

Task<> NodeRequestHandler::SetNodeMetadata(Node&) { co_return; }

Task<> Provider::LookAgain() { co_return; }

}  // namespace nodepool::driver
