#include "launcher/leases/lease_keeper.h"

#include <algorithm>

#include "async/cleanup.h"
#include "launcher/elected.h"
#include "launcher/leases/lease_term.h"

namespace nodepool::launcher {
namespace {

bool IsInUseForALease(const store::StoredNode* node) {
  return node != nullptr && node->record.state == NodeState::kInUse && LeaseOf(node->record);
}

}  // namespace

LeaseKeeper::LeaseKeeper(Context& context)
    : context_(context), logger_("nodepool.LeaseKeeper"), tasks_(context.loop, logger_) {}

LeaseKeeper::~LeaseKeeper() = default;

void LeaseKeeper::Start() {
  if (IsNeeded()) return ContendOnce();
  subscriptions_.push_back(context_.caches.leases.OnChange(
      [this](const LeaseId&, const store::StoredLease*, const store::StoredLease*) { ContendOnce(); }));
  subscriptions_.push_back(context_.caches.nodes.OnChange(
      [this](const NodeId&, const store::StoredNode*, const store::StoredNode* after) {
        if (!contends_ && IsInUseForALease(after)) ContendOnce();
      }));
}

Task<> LeaseKeeper::Stop() {
  subscriptions_.clear();
  co_await tasks_.Stop();
}

bool LeaseKeeper::IsNeeded() const {
  if (!context_.caches.leases.all().empty()) return true;
  return std::ranges::any_of(context_.caches.nodes.InState(NodeState::kInUse), [this](const NodeId& id) {
    return IsInUseForALease(context_.caches.nodes.Find(id));
  });
}

void LeaseKeeper::ContendOnce() {
  if (std::exchange(contends_, true)) return;
  tasks_.Spawn("contend for the keeping of leases",
               LeadWhenElected(
                   context_.store.leases.Election(Contender(context_)), [this] { return Lead(); },
                   "Keeping leases", logger_));
}

Task<> LeaseKeeper::Lead() {
  logger_.Info("Elected to keep leases");
  auto term = std::make_unique<LeaseTerm>(context_, logger_);
  auto stop = [&term] { return term->Stop(); };
  co_await WithCleanup(term->Run(), stop);
}

}  // namespace nodepool::launcher
