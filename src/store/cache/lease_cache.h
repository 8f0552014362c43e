#pragma once

#include <set>
#include <string>

#include "store/cache/record_cache.h"

namespace nodepool::store {

// Every lease, in memory.
class LeaseCache : public RecordCache<StoredLease> {
 public:
  using RecordCache::RecordCache;

  const std::set<LeaseId>& OfClient(const std::string& client) const {
    return by_client_.EntryOf(client).leases;
  }
  // How many nodes the client's leases have or wait for.
  std::size_t NodeCountOf(const std::string& client) const { return by_client_.EntryOf(client).nodes; }
  // The lease that waits for the request; null: none.
  const StoredLease* WaitingFor(const RequestId& request) const {
    return FirstOf(by_request_.EntryOf(request));
  }
  // The lease that has the node; null: none.
  const StoredLease* Holding(const NodeId& node) const { return FirstOf(by_node_.EntryOf(node)); }

 private:
  struct OfOneClient {
    std::set<LeaseId> leases;
    std::size_t nodes = 0;
    void Add(const StoredLease& lease) {
      leases.insert(lease.id);
      nodes += lease.record.node_count();
    }
    void Remove(const StoredLease& lease) {
      leases.erase(lease.id);
      nodes -= lease.record.node_count();
    }
    bool empty() const { return leases.empty(); }
  };
  // One, but for leases that were written by hand.
  using FewLeases = boost::container::flat_set<LeaseId>;

  const StoredLease* FirstOf(const FewLeases& leases) const {
    return leases.empty() ? nullptr : Find(*leases.begin());
  }

  RecordIndex<StoredLease, std::string, OfOneClient> by_client_{
      records_, [](const StoredLease& lease) -> const auto& { return lease.record.client; }};
  RecordIndex<StoredLease, RequestId, FewLeases> by_request_{
      records_, [](const StoredLease& lease) {
        const RequestId& request = lease.record.request;
        return request.empty() ? std::nullopt : std::optional(request);
      }};
  RecordIndex<StoredLease, NodeId, FewLeases> by_node_{
      records_, [](const StoredLease& lease) -> const auto& { return lease.record.nodes; }};
};

}  // namespace nodepool::store
