#include "launcher/leases/lease_keeper.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "async/cleanup.h"
#include "launcher/leases/lease_term.h"

namespace nodepool::launcher {
namespace {

bool IsInUseForALease(const store::StoredNode* node) {
  return node != nullptr && node->record.state == NodeState::kInUse && LeaseOf(node->record);
}

}  // namespace

LeaseKeeper::LeaseKeeper(Context& context, std::string hostname)
    : context_(context),
      hostname_(std::move(hostname)),
      logger_("nodepool.LeaseKeeper"),
      tasks_(context.loop, logger_) {}

LeaseKeeper::~LeaseKeeper() = default;

void LeaseKeeper::Start() {
  if (IsNeeded()) return StandOnce();
  subscriptions_.push_back(context_.leases.OnChange(
      [this](const LeaseId&, const store::StoredLease*, const store::StoredLease*) { StandOnce(); }));
  subscriptions_.push_back(context_.nodes.OnChange(
      [this](const NodeId&, const store::StoredNode*, const store::StoredNode* after) {
        if (!stands_ && IsInUseForALease(after)) StandOnce();
      }));
}

Task<> LeaseKeeper::Stop() {
  subscriptions_.clear();
  co_await tasks_.Stop();
}

bool LeaseKeeper::IsNeeded() const {
  if (!context_.leases.all().empty()) return true;
  return std::ranges::any_of(context_.nodes.InState(NodeState::kInUse),
                             [this](const NodeId& id) { return IsInUseForALease(context_.nodes.Find(id)); });
}

void LeaseKeeper::StandOnce() {
  if (std::exchange(stands_, true)) return;
  tasks_.Spawn("stand for the keeping of leases", Compete());
}

Task<> LeaseKeeper::Compete() {
  zk::Election election = context_.store.leases.Election(fmt::format("{}-{}", hostname_, getpid()));
  co_await election.RunForEver([this] { return Lead(); }, "Keeping leases", logger_);
}

Task<> LeaseKeeper::Lead() {
  logger_.Info("Elected to keep leases");
  auto term = std::make_unique<LeaseTerm>(context_, logger_);
  auto stop = [&term] { return term->Stop(); };
  co_await WithCleanup(term->Run(), stop);
}

}  // namespace nodepool::launcher
