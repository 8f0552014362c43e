#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "base/subscription.h"
#include "launcher/context.h"

namespace nodepool::launcher {

// What a client asks for (http-requests.md 3).
struct LeaseOrder {
  std::string client;  // the token's name
  std::vector<LabelName> labels;
  int priority = 200;
  double relative_priority = 0;
  std::optional<std::string> requestor;
  std::optional<std::string> tenant;
  ProviderName provider;
  std::int64_t lease_seconds = 300;
  std::string key;                       // idempotency key; empty: none
  std::string asked;                     // digest of what was asked
  std::optional<std::size_t> max_nodes;  // of all leases of the client together
};

struct PlacedOrder {
  enum class Result {
    kMade,
    kRepeated,  // the key's lease exists
    kDiffers,   // it exists, and something else was asked for
    kTooMany,   // the client would have more than max_nodes
  };
  Result result = Result::kMade;
  LeaseId id;
  std::size_t nodes = 0;  // that the client's other leases have or wait for
};

// Makes, finds and changes leases for the clients of this launcher's web server. Errors are those of
// ZooKeeper; callers bound the time.
class LeaseDesk {
 public:
  explicit LeaseDesk(Context& context);
  ~LeaseDesk();

  // Ends when the cache shows the lease.
  Task<PlacedOrder> Place(LeaseOrder order);
  // As the cache has it; when it has none, once it has caught up. nullopt: there is no such lease.
  Task<std::optional<store::StoredLease>> Find(LeaseId id);
  // Ends when the lease is not waiting any more, or at the deadline; at once when too many wait.
  Task<> AwaitDecision(LeaseId id, SteadyTime deadline);

  // Each ends when the cache shows it. False: the lease is gone, or in a state that does not allow it.
  Task<bool> Renew(LeaseId id);
  Task<bool> End(LeaseId id);
  Task<bool> HoldNode(LeaseId id, NodeId node, std::string reason, std::optional<std::int64_t> seconds);

  const store::LeaseCache& leases() const { return context_.leases; }

 private:
  Task<PlacedOrder> Make(LeaseOrder order);
  Task<PlacedOrder> Repeat(LeaseId id, const LeaseOrder& order);
  std::size_t NodesOf(const std::string& client) const;
  Task<> Wait(LeaseId id);

  Context& context_;
  std::map<std::string, std::size_t> being_made_;  // nodes by client, which the cache does not show yet
  std::map<LeaseId, WaitList> waiting_;
  std::size_t waits_ = 0;
  Subscription changes_;
};

}  // namespace nodepool::launcher
