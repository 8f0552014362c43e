#include "launcher/leases/lease_sweep.h"

#include <algorithm>
#include <vector>

#include "async/attempt.h"
#include "store/leased_nodes.h"

namespace nodepool::launcher {
namespace {

constexpr std::size_t kNodesPerRead = 100;

// Something that names a lease.
template <class Id>
struct Named {
  Id id;
  LeaseId lease;
};

struct Findings {
  std::vector<Named<NodeId>> held;         // their leases have them
  std::vector<Named<NodeId>> orphans;      // their leases do not
  std::vector<Named<RequestId>> requests;  // their leases are gone
};

Findings Find(const Context& context) {
  Findings findings;
  for (const NodeId& id : context.caches.nodes.InState(NodeState::kInUse)) {
    std::optional<LeaseId> lease = LeaseOf(context.caches.nodes.Find(id)->record);
    if (!lease) continue;
    const store::StoredLease* holder = context.caches.leases.Holding(id);
    bool is_held = holder != nullptr && holder->id == *lease;
    (is_held ? findings.held : findings.orphans).push_back({id, *lease});
  }
  for (const auto& [id, request] : context.caches.requests.all()) {
    std::optional<LeaseId> lease = LeaseOf(request.record);
    if (lease && context.caches.leases.Find(*lease) == nullptr) findings.requests.push_back({id, *lease});
  }
  return findings;
}

Task<> DropLost(Context& context, const std::vector<Named<NodeId>>& held,
                const std::function<void(const LeaseId&)>& drop) {
  for (std::size_t begin = 0; begin < held.size(); begin += kNodesPerRead) {
    std::size_t end = std::min(held.size(), begin + kNodesPerRead);
    std::vector<NodeId> ids;
    for (std::size_t i = begin; i < end; ++i) ids.push_back(held[i].id);
    std::vector<store::LockedView> views =
        co_await store::ReadLockedViews(context.store.tree, std::move(ids));
    for (std::size_t i = begin; i < end; ++i) {
      if (!views[i - begin].is_locked_by(OwnerText(held[i].lease))) drop(held[i].lease);
    }
  }
}

Task<> Pass(Context& context, const log::Logger& logger, const std::function<void(const LeaseId&)>& drop) {
  Findings findings = Find(context);
  for (const auto& [id, lease] : findings.orphans) {
    bool is_freed = co_await context.store.leases.FreeOrphan(id, lease);
    if (is_freed) logger.About(log::OfNode(id)).Warning("Lease {} is gone; its node is given back", lease);
  }
  for (const auto& [id, lease] : findings.requests) {
    bool is_deleted = co_await context.store.leases.DeleteOrphan(id, lease);
    if (is_deleted) logger.Warning("Lease {} is gone; its request {} is deleted", lease, id);
  }
  co_await DropLost(context, findings.held, drop);
}

}  // namespace

Task<> SweepLeases(Context& context, log::Logger logger, std::function<void(const LeaseId&)> drop) {
  while (true) {
    if (context.caches.synced()) {
      Outcome<> passed = co_await Attempt(Pass(context, logger, drop));
      if (FailedWith(passed, Verdict::kLostSession)) passed.error().Rethrow();
      if (!passed)
        logger.Error("The sweep of leases failed, the next one follows: {}", passed.error().message());
    }
    co_await context.loop.SleepFor(context.intervals.cleanup);
  }
}

}  // namespace nodepool::launcher
