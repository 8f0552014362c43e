#include "drivers/metastatic/backing_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "async/deadline.h"
#include "model/node_request.h"

namespace nodepool::drivers {

namespace {

constexpr const char* kPrecedence = "100";                   // of requests for backing nodes
constexpr Duration kUnseenLimit = std::chrono::seconds(30);  // a new request gets into the cache
constexpr Duration kStopLimit = std::chrono::seconds(10);
constexpr std::size_t kMaxUsersAtOnce = 1000;

}  // namespace

BackingRequests::BackingRequests(Loop& loop, const driver::RecordsEnvironment& records, BackingNodes& nodes,
                                 std::shared_ptr<const MetastaticConfig> config, log::Logger logger)
    : loop_(loop),
      records_(records),
      nodes_(nodes),
      config_(std::move(config)),
      owner_(OwnerName(config_->name)),
      logger_(std::move(logger)) {}

bool BackingRequests::Follow(const RequestId& id, const store::StoredRequest* before,
                             const store::StoredRequest* after) {
  const store::StoredRequest* request = after != nullptr ? after : before;
  if (request->record.requestor != owner_) return false;
  bool is_known = requests_.contains(id);
  if (!is_known && after != nullptr && !after->revision.is_ephemeral()) orphans_.insert(id);
  return true;
}

std::shared_ptr<BackingRequests::Waiter> BackingRequests::AddWaiter(NodeId node,
                                                                    const MetastaticLabel& label) {
  auto waiter = std::make_shared<Waiter>();
  waiter->node = std::move(node);
  waiter->label = &label;
  waiters_.push_back(waiter);
  return waiter;
}

void BackingRequests::RemoveWaiter(const std::shared_ptr<Waiter>& waiter) {
  waiter->is_alive = false;
  std::erase(waiters_, waiter);
}

std::map<LabelName, const MetastaticLabel*> BackingRequests::WaitingLabels() const {
  std::map<LabelName, const MetastaticLabel*> labels;
  for (const std::shared_ptr<Waiter>& waiter : waiters_) labels.emplace(waiter->label->name, waiter->label);
  return labels;
}

BackingRequests::Waiters BackingRequests::WaitingFor(const MetastaticLabel& label) const {
  Waiters waiting;
  for (const std::shared_ptr<Waiter>& waiter : waiters_) {
    if (waiter->label == &label && !waiter->place.is_done()) waiting.push_back(waiter);
    if (waiting.size() == kMaxUsersAtOnce) break;
  }
  return waiting;
}

int BackingRequests::CountWaiting(const RequestId& request) const {
  return static_cast<int>(std::ranges::count_if(waiters_, [&request](const auto& waiter) {
    return waiter->request == request && !waiter->place.is_done();
  }));
}

Task<> BackingRequests::AdoptOrphans() {
  for (const RequestId& id : std::exchange(orphans_, {})) {
    const store::StoredRequest* request = records_.requests->Find(id);
    if (request == nullptr || requests_.contains(id)) continue;
    const auto& types = request->record.node_types;
    const MetastaticLabel* label = types.empty() ? nullptr : config_->FindByBackingLabel(types.front());
    if (label == nullptr) {
      logger_.Info("Withdrawing request {} of a former run: its label is no longer configured", id);
      co_await records_.store.requests.Delete(id);
      continue;
    }
    logger_.Info("Adopting request {} of a former run", id);
    requests_[id] = {label, request->record.created_time.value_or(loop_.Now()), true};
  }
}

Task<> BackingRequests::FollowRequests() {
  const std::map<RequestId, Request> requests = requests_;
  for (const auto& [id, request] : requests) {
    bool is_over = co_await FollowRequest(id, request);
    if (is_over) Drop(id);
  }
}

void BackingRequests::Drop(const RequestId& id) {
  requests_.erase(id);
  for (const std::shared_ptr<Waiter>& waiter : waiters_) {
    if (waiter->request == id) waiter->request = RequestId();
  }
}

// Returns true when the request is over.
Task<bool> BackingRequests::FollowRequest(RequestId id, Request request) {
  const store::StoredRequest* stored = records_.requests->Find(id);
  if (stored == nullptr) {
    bool may_appear = !request.is_seen && loop_.Now() - request.made < kUnseenLimit;
    co_return !may_appear;
  }
  requests_[id].is_seen = true;
  std::optional<RequestState> state = stored->record.state;
  if (state == RequestState::kFulfilled && !stored->record.nodes.empty()) {
    co_await Claim(id, request, stored->record.nodes.front());
    co_return true;
  }
  if (state == RequestState::kFailed) {
    std::string why = fmt::format("no node of its backing label {} could be had: {}",
                                  request.label->backing_label, WhyFailed(stored->record));
    co_await Fail(id, std::move(why));
    co_return true;
  }
  co_return false;
}

// Changes lock, record and request in one transaction: a crash leaves all of them changed or none
// (drivers.md 8.4).
Task<> BackingRequests::Claim(RequestId id, Request request, NodeId node) {
  BackingNode backing;
  backing.label = request.label->name;
  backing.slots = request.label->max_parallel_jobs;
  backing.launched = request.made;
  bool is_delivered = false;
  auto change = [this, &backing, &id, &is_delivered](Node& record) {
    bool is_ours =
        record.state == NodeState::kInUse && ParseBackingNode(record.user_data.value(), owner_).has_value();
    // An operator may have held or deleted it meanwhile.
    bool is_new = record.state == NodeState::kReady && record.allocated_to == id;
    is_delivered = is_ours || is_new;
    if (!is_new) return store::Change::kSkip;
    record.user_data = ToUserData(backing, owner_);
    record.SetState(NodeState::kInUse, loop_.Now());
    return store::Change::kWrite;
  };
  bool is_claimed = co_await records_.store.nodes.Claim(node, owner_, change, id);
  if (!is_claimed || !is_delivered)
    co_return co_await Fail(id, "the backing node was taken by another client");
  logger_.About(log::OfNode(node))
      .Info("Backing node for label {} with {} slots", backing.label, backing.slots);
  nodes_.Set(node, std::move(backing), loop_.Now());
  nodes_.Verify(node, true, loop_.Now());
}

Task<> BackingRequests::Fail(RequestId id, std::string why) {
  logger_.Warning("Request {}: {}", id, why);
  const Waiters waiters = waiters_;
  for (const std::shared_ptr<Waiter>& waiter : waiters) {
    if (waiter->request == id) waiter->place.Fail(std::make_exception_ptr(Error(Verdict::kFail, why)));
  }
  co_await records_.store.requests.Delete(std::move(id));
}

Task<> BackingRequests::RequestMissing() {
  const Waiters waiters = waiters_;
  std::map<RequestId, int> taken;
  for (const std::shared_ptr<Waiter>& waiter : waiters) {
    if (waiter->needs_place()) ++taken[waiter->request];
  }
  for (const std::shared_ptr<Waiter>& waiter : waiters) {
    if (!waiter->needs_place() || !waiter->request.empty()) continue;
    const MetastaticLabel* label = waiter->label;
    auto has_room = [&](const auto& entry) {
      return entry.second.label == label && taken[entry.first] < label->max_parallel_jobs;
    };
    auto open = std::ranges::find_if(requests_, has_room);
    if (open == requests_.end()) {
      NodeRequest request;
      request.SetState(RequestState::kRequested, loop_.Now());
      request.created_time = loop_.Now();
      request.node_types = {label->backing_label};
      request.requestor = owner_;
      RequestId id = co_await records_.store.requests.Create(kPrecedence, std::move(request), true);
      logger_.Info("Request {} for a backing node of label {}", id, label->name);
      open = requests_.emplace(id, Request{label, loop_.Now()}).first;
    }
    waiter->request = open->first;
    ++taken[open->first];
  }
}

Task<> BackingRequests::WithdrawUnused() {
  std::vector<RequestId> unused;
  for (const auto& [id, request] : requests_) {
    bool is_old = loop_.Now() - request.made > request.label->grace_time;
    if (is_old && CountWaiting(id) == 0) unused.push_back(id);
  }
  for (const RequestId& id : unused) {
    logger_.Info("Withdrawing request {}: its node is no longer needed", id);
    co_await records_.store.requests.Delete(id);
    Drop(id);
  }
}

Task<> BackingRequests::WithdrawAll() {
  for (const auto& [id, request] : std::exchange(requests_, {})) {
    SteadyTime deadline = loop_.SteadyNow() + kStopLimit;
    Outcome<> withdrawn = co_await Attempt(
        WithDeadline(loop_, deadline, "withdrawing a request", records_.store.requests.Delete(id)));
    if (!withdrawn) break;
  }
}

}  // namespace nodepool::drivers
