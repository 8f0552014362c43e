#include "launcher/min_ready.h"

#include <algorithm>

#include "async/backoff.h"
#include "async/task.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "model/node_request.h"

namespace nodepool::launcher {
namespace {

constexpr std::size_t kMaxAtOnce = 200;  // requests in a transaction, which a server limits to 1 MB

bool IsDecided(const NodeRequest& request) {
  return request.state == RequestState::kFulfilled || request.state == RequestState::kFailed;
}

}  // namespace

MinReady::MinReady(Context& context, std::function<LabelOffer(const LabelName&)> offer_of,
                   std::function<void(const Shortages&)> report)
    : context_(context),
      offer_of_(std::move(offer_of)),
      report_(std::move(report)),
      logger_("nodepool.NodePool"),
      requests_(context.store.tree),
      // A burst of changes leads to one check.
      checking_(
          context.loop, "ready nodes", {.settle = std::chrono::milliseconds(10)},
          [this] { return CheckAll(); }, logger_),
      finishing_(context.loop, context.random, logger_,
                 {[](const RequestId& id) {
                    return fmt::format("Min-ready request {} could not be finished, trying again", id);
                  },
                  [](const RequestId& id) { return log::OfRequest(id); }},
                 [this](const RequestId& id) { return FinishIfDecided(id); }),
      tasks_(context.loop, logger_) {}

MinReady::~MinReady() = default;

void MinReady::Start() {
  subscriptions_.push_back(context_.caches.requests.OnChange(
      [this](const RequestId& id, const store::StoredRequest* before, const store::StoredRequest* after) {
        RequestChanged(id, before, after);
      }));
  subscriptions_.push_back(context_.caches.nodes.OnChange(
      [this](const NodeId& id, const store::StoredNode* before, const store::StoredNode* after) {
        bool was_free = before != nullptr && before->record.is_free();
        bool is_free = after != nullptr && after->record.is_free();
        if (was_free != is_free) checking_.Wake();
        if (after == nullptr) CapacityChanged();
        auto waiting = node_changed_.extract(id);
        if (!waiting.empty()) waiting.mapped().NotifyAll();
      }));
  subscriptions_.push_back(context_.caches.images.OnChange([this](const ImageName&) { checking_.Wake(); }));
  for (const auto& [id, request] : context_.caches.requests.all()) RequestChanged(id, nullptr, &request);
  tasks_.Spawn("keep min-ready nodes", checking_.Run());
}

Task<> MinReady::Stop() {
  subscriptions_.clear();
  co_await finishing_.Stop();
  co_await tasks_.Stop();
}

void MinReady::CapacityChanged() {
  capacity_changed_ = context_.loop.SteadyNow();
  checking_.Wake();
}

// Runs periodically, too, for what no event announces, such as a driver that can answer again.
SteadyTime MinReady::CheckAll() {
  if (!context_.caches.SyncedOrWake(checking_)) return SteadyTime::max();
  SteadyTime now = context_.loop.SteadyNow();
  if (now >= next_sweep_) {
    if (next_sweep_ != SteadyTime()) DropVanished();
    next_sweep_ = now + context_.intervals.cleanup;
  }
  SteadyTime next = next_sweep_;
  for (const auto& [name, label] : context_.config->common.labels)
    next = std::min(next, Decide(name, label.min_ready).due_at.value_or(next));
  DropShortages();
  if (!is_submitting_ && !Missing().empty()) {
    is_submitting_ = true;
    tasks_.Spawn("submit min-ready requests", Submit());
  }
  return next;
}

// A request may be gone with its session before the creation's answer arrives.
void MinReady::DropVanished() {
  for (auto& [label, ids] : open_)
    std::erase_if(ids, [this](const RequestId& id) { return context_.caches.requests.Find(id) == nullptr; });
}

void MinReady::DropShortages() {
  const auto& labels = context_.config->common.labels;
  std::size_t dropped = std::erase_if(shortages_, [&](const auto& shortage) {
    auto label = labels.find(shortage.first);
    return label == labels.end() ||
           static_cast<int>(context_.caches.nodes.FreeCount(shortage.first)) >= label->second.min_ready;
  });
  if (dropped > 0) report_(shortages_);
}

void MinReady::IsShort(const LabelName& label, std::string why) {
  ShortStock& shortage = shortages_.try_emplace(label, context_.loop.Now()).first->second;
  if (std::exchange(shortage.why, std::move(why)) != shortage.why) report_(shortages_);
}

// What the pools that offer the label say; the others only say that they do not have it.
std::string MinReady::WhyShort(const LabelName& label, const NodeRequest& failed) const {
  std::vector<std::string> beginnings;
  for (const Component* pool : context_.caches.components.Pools()) {
    if (std::ranges::find(pool->supported_labels, label) != pool->supported_labels.end())
      beginnings.push_back(fmt::format("{} {}: ", pool->provider_name, pool->name.value_or(PoolName())));
  }
  std::vector<std::string> reasons = DeclineReasons(failed);
  std::erase_if(reasons, [&](const std::string& reason) {
    return std::ranges::none_of(beginnings, [&](const auto& text) { return reason.starts_with(text); });
  });
  return reasons.empty() ? WhyFailed(failed) : Join(reasons, "; ");
}

void MinReady::IsNotShort(const LabelName& label) {
  if (shortages_.erase(label) > 0) report_(shortages_);
}

int MinReady::UnderWay(const LabelName& label) const {
  auto open = open_.find(label);
  return open == open_.end() ? 0 : static_cast<int>(open->second.size());
}

// Logs once what is lacking.
bool MinReady::IsAvailable(const LabelName& label) {
  LabelOffer offer = offer_of_(label);
  if (offer.lacks.empty()) {
    lacking_.erase(label);
  } else if (std::exchange(lacking_[label], offer.lacks) != offer.lacks) {
    logger_.Info("Min-ready of {} waits: {}", label, offer.lacks);
  }
  if (!offer.lacks.empty()) IsShort(label, offer.lacks);
  return offer.is_available;
}

std::vector<LabelName> MinReady::Missing() {
  std::vector<LabelName> missing;
  for (const auto& [name, label] : context_.config->common.labels) {
    int count = Decide(name, label.min_ready).missing;
    if (count == 0 || !IsAvailable(name)) continue;
    missing.insert(missing.end(), static_cast<std::size_t>(count), name);
  }
  return missing;
}

sched::StockDecision MinReady::Decide(const LabelName& label, int min_ready) const {
  sched::Stock stock{.min_ready = min_ready,
                     .free = static_cast<int>(context_.caches.nodes.FreeCount(label)),
                     .under_way = UnderWay(label),
                     .capacity_changed_at = capacity_changed_};
  if (auto failure = failures_.find(label); failure != failures_.end()) stock.failed_at = failure->second;
  sched::HoldOff hold_off{.always = context_.intervals.min_ready_pause,
                          .unchanged = context_.intervals.min_ready_holdoff};
  return DecideStock(stock, hold_off, context_.loop.SteadyNow());
}

Task<> MinReady::Submit() {
  ScopeExit done([this] {
    is_submitting_ = false;
    checking_.Wake();
  });
  Backoff backoff({}, context_.random);
  while (true) {
    Outcome<bool> submitted = co_await Attempt(TrySubmit());
    if (submitted && *submitted) co_return;
    if (!submitted) {
      logger_.Warning("Min-ready nodes could not be requested, trying again: {}",
                      submitted.error().message());
    }
    co_await context_.loop.SleepFor(backoff.Next());
  }
}

// False: another launcher has requested min-ready nodes meanwhile.
Task<bool> MinReady::TrySubmit() {
  std::int32_t version = co_await requests_.Version();
  co_await context_.caches.requests.CatchUp();
  co_await context_.caches.nodes.CatchUp();
  std::vector<LabelName> missing = Missing();
  if (missing.empty()) co_return true;
  if (missing.size() > kMaxAtOnce) missing.resize(kMaxAtOnce);
  std::vector<NodeRequest> requests;
  for (const LabelName& label : missing) requests.push_back(RequestFor(label));
  auto ids = co_await requests_.Create(requests, version);
  if (!ids) co_return false;
  for (std::size_t i = 0; i < ids->size(); ++i) {
    const RequestId& id = (*ids)[i];
    // Until the cache shows the request, its node must not count as missing.
    open_[missing[i]].insert(id);
    logger_.About({*requests[i].event_id, "", ""})
        .Info("Requested a min-ready node of {}: {}", missing[i], id);
    if (const store::StoredRequest* cached = context_.caches.requests.Find(id))
      RequestChanged(id, nullptr, cached);
  }
  co_return true;
}

NodeRequest MinReady::RequestFor(const LabelName& label) const {
  NodeRequest request;
  request.SetState(RequestState::kRequested, context_.loop.Now());
  request.node_types = {label};
  request.reuse = false;
  request.requestor = std::string(kMinReadyRequestor);
  request.event_id = context_.random.UuidHex();
  return request;
}

void MinReady::RequestChanged(const RequestId& id, const store::StoredRequest* before,
                              const store::StoredRequest* after) {
  const NodeRequest* record = after != nullptr    ? &after->record
                              : before != nullptr ? &before->record
                                                  : nullptr;
  if (record == nullptr || record->requestor != kMinReadyRequestor || record->node_types.empty()) return;
  bool is_finished = after != nullptr && IsOurs(*after) && IsDecided(after->record);
  // That of a breaker is for no stock; its node becomes free in the same way.
  if (IsProbe(*record)) {
    if (is_finished) finishing_.Notice(id);
    return;
  }
  const LabelName& label = record->node_types.front();
  // A fulfilled request counts until its node is seen to be free.
  bool is_over = after == nullptr || after->record.state == RequestState::kFailed;
  if (is_over) {
    open_[label].erase(id);
    checking_.Wake();
  } else {
    open_[label].insert(id);
  }
  if (!is_finished) return;
  bool is_new = before == nullptr || !IsDecided(before->record);
  if (is_new && is_over) {
    failures_[label] = context_.loop.SteadyNow();
    IsShort(label, WhyShort(label, after->record));
  } else if (is_new) {
    IsNotShort(label);
  }
  finishing_.Notice(id);
}

// Decided by the session, since the answer to its creation may have been lost.
bool MinReady::IsOurs(const store::StoredRequest& request) const {
  return request.revision.ephemeral_owner == context_.store.tree.client().session().id;
}

std::optional<Reconciler<RequestId>::Work> MinReady::FinishIfDecided(const RequestId& id) {
  const store::StoredRequest* request = context_.caches.requests.Find(id);
  if (request == nullptr || !IsOurs(*request) || !IsDecided(request->record)) return std::nullopt;
  return Reconciler<RequestId>::Work{"finish min-ready request", Finish(id, request->record)};
}

// The node is allocated to our request, so no other program may change it: no lock needed.
Task<> MinReady::Finish(RequestId id, NodeRequest request) {
  auto deallocate = [id](Node& node) {
    if (node.allocated_to != id) return store::Change::kSkip;
    node.Free();
    return store::Change::kWrite;
  };
  for (const NodeId& node : request.nodes) {
    bool is_freed = co_await context_.store.nodes.UpdateUnlocked(node, deallocate);
    if (is_freed) co_await AwaitSeenFree(node, id);
  }
  co_await context_.store.requests.Delete(id);
}

// Ends when our own cache shows what we wrote; otherwise the node would count as missing between the end of
// its request and the event of its release.
Task<> MinReady::AwaitSeenFree(NodeId node, RequestId request) {
  while (true) {
    const store::StoredNode* cached = context_.caches.nodes.Find(node);
    if (cached == nullptr || cached->record.allocated_to != request) co_return;
    co_await node_changed_[node].Wait();
  }
}

}  // namespace nodepool::launcher
