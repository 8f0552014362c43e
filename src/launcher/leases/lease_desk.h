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
  std::optional<std::size_t> max_nodes;  // of the client: of all its leases together, and held ones
};

// How many leases there may be (http-requests.md 3.1).
inline constexpr std::size_t kMaxLeasesOfClient = 4'000;
inline constexpr std::size_t kMaxLeases = 16'000;

struct PlacedOrder {
  enum class Result {
    kMade,
    kRepeated,       // the key's lease exists
    kDiffers,        // it exists, and something else was asked for
    kTooMany,        // the client would have more than max_nodes
    kTooManyLeases,  // the client would have more than kMaxLeasesOfClient
    kFull,           // there would be more than kMaxLeases
    kNotOffered,     // no launcher offers one of the labels
  };
  Result result = Result::kMade;
  LeaseId id;
  std::size_t nodes = 0;   // that the client has or waits for
  std::string fault = {};  // which label is not offered
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

  const store::LeaseCache& leases() const { return context_.caches.leases; }

 private:
  // What the cache does not show yet.
  struct BeingMade {
    std::size_t leases = 0;
    std::size_t nodes = 0;
  };

  PlacedOrder::Result Check(const LeaseOrder& order) const;
  std::string FaultOf(const std::vector<LabelName>& labels) const;
  Task<PlacedOrder> Make(LeaseOrder order);
  Task<PlacedOrder> Repeat(LeaseId id, const LeaseOrder& order);
  std::size_t NodesOf(const std::string& client) const;
  std::size_t HeldNodesOf(const std::string& client) const;
  Task<> Wait(LeaseId id);

  Context& context_;
  std::map<std::string, BeingMade> being_made_;    // by client
  std::size_t leases_being_made_ = 0;              // of all clients
  std::multimap<std::string, NodeId> being_held_;  // by client
  std::map<LeaseId, WaitList> waiting_;
  std::size_t waits_ = 0;
  Subscription changes_;
};

}  // namespace nodepool::launcher
