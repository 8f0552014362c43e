#include "launcher/requests/node_set.h"

#include <algorithm>

namespace nodepool::launcher {

NodeSet::NodeSet(Context& context, Pool& pool, Event& changed, log::Logger logger)
    : context_(context),
      pool_(pool),
      changed_(changed),
      logger_(std::move(logger)),
      rejected_(context.loop, context.intervals.reuse_retry),
      launches_(context.loop, logger_) {}

log::Logger NodeSet::About(const std::optional<NodeId>& node) const {
  return logger_.About({logger_.ids().event, logger_.ids().request, node ? node->value : ""});
}

std::vector<LabelName> NodeSet::Missing(const std::vector<LabelName>& wanted) const {
  std::vector<LabelName> satisfied;
  for (const auto& slot : slots_) satisfied.push_back(slot->label);
  return sched::MissingLabels(wanted, satisfied);
}

bool NodeSet::IsComplete(const std::vector<LabelName>& wanted) const {
  return slots_.size() == wanted.size() && ready_count() == std::ssize(slots_);
}

bool NodeSet::AnyFailed() const {
  return std::ranges::any_of(slots_, [](const auto& slot) { return slot->state == Slot::State::kFailed; });
}

std::string NodeSet::LastFault() const {
  return last_fault_.empty() ? "a node failed to launch" : last_fault_;
}

std::ptrdiff_t NodeSet::ready_count() const {
  return std::ranges::count_if(slots_, [](const auto& slot) { return slot->state == Slot::State::kReady; });
}

std::vector<NodeId> NodeSet::InOrder(const std::vector<LabelName>& labels) const {
  std::vector<std::shared_ptr<Slot>> left = slots_;
  std::vector<NodeId> nodes;
  for (const LabelName& label : labels) {
    auto slot = std::ranges::find(left, label, [](const auto& candidate) { return candidate->label; });
    nodes.push_back((*slot)->node->id());
    left.erase(slot);
  }
  return nodes;
}

std::vector<store::LockedNode*> NodeSet::Locked() {
  std::vector<store::LockedNode*> locked;
  for (const auto& slot : slots_) locked.push_back(&*slot->node);
  return locked;
}

void NodeSet::Announce(DriverSide& driver) const {
  for (const auto& slot : slots_) {
    if (slot->node) driver.handler->NodeReused(slot->node->record());
  }
}

std::size_t NodeSet::ReleaseReservations() { return std::exchange(reservations_, {}).size(); }

Task<std::optional<Refusals::Refusal>> NodeSet::DropRefused() {
  auto is_refused = [](const auto& slot) { return slot->state == Slot::State::kRefused; };
  std::optional<Refusals::Refusal> sum;
  while (true) {
    auto slot = std::ranges::find_if(slots_, is_refused);
    if (slot == slots_.end()) co_return sum;
    // Stop counting its launch: the node may be deleted before our cache has ever shown it.
    std::shared_ptr<Slot> dropped = *slot;
    slots_.erase(slot);
    if (!sum) sum.emplace();
    sum->what.resources.merge(dropped->refusal.what.resources);
    sum->what.labels.merge(dropped->refusal.what.labels);
    sum->lacks_capacity |= dropped->refusal.lacks_capacity;
    if (dropped->node) co_await dropped->node->Unlock();
  }
}

void NodeSet::HandedOver() {
  for (const auto& slot : slots_) {
    if (slot->launch) ended_.push_back(std::move(*slot->launch));
  }
  slots_.clear();
}

Task<> NodeSet::Release(RequestId request) {
  const auto slots = slots_;
  for (const auto& slot : slots) {
    if (!slot->node) continue;
    Outcome<> released = co_await Attempt(ReleaseOne(*slot, request));
    if (!released) {
      logger_.Warning("Node {} could not be released: {}", slot->node->id(), released.error().message());
    }
    slot->node.reset();
  }
  HandedOver();
}

Task<> NodeSet::ReleaseOne(Slot& slot, RequestId request) {
  auto deallocate = [request](Node& node) {
    if (node.state != NodeState::kReady || node.allocated_to != request) return store::Change::kSkip;
    node.Free();
    return store::Change::kWrite;
  };
  if (slot.state == Slot::State::kReady) co_await slot.node->Update(deallocate);
  co_await slot.node->Unlock();
}

Task<> NodeSet::AwaitInCache() {
  auto is_pending = [](const Reservation& launch) { return launch.is_pending(); };
  if (std::ranges::none_of(ended_, is_pending)) co_return;
  co_await CatchUp();
  // The others were removed before the cache could show them.
  bool is_freed = std::ranges::any_of(ended_, is_pending);
  ended_.clear();
  if (is_freed) context_.ledger.CapacityChanged();
}

Task<> NodeSet::Stop() {
  co_await launches_.Stop();
  for (const auto& slot : slots_) slot->launch.reset();
  ended_.clear();
}

}  // namespace nodepool::launcher
