#include "launcher/min_ready.h"

#include <algorithm>

#include "async/backoff.h"

namespace nodepool::launcher {

MinReady::MinReady(Context& context, std::function<bool(const LabelName&)> is_available)
    : context_(context),
      is_available_(std::move(is_available)),
      logger_("nodepool.NodePool"),
      tasks_(context.loop, logger_) {}

MinReady::~MinReady() = default;

void MinReady::Start() {
  subscriptions_.push_back(context_.requests.OnChange(
      [this](const RequestId& id, const store::StoredRequest* before, const store::StoredRequest* after) {
        RequestChanged(id, before, after);
      }));
  subscriptions_.push_back(context_.nodes.OnChange(
      [this](const NodeId& id, const store::StoredNode* before, const store::StoredNode* after) {
        bool was_free = before != nullptr && before->record.is_free();
        bool is_free = after != nullptr && after->record.is_free();
        if (was_free != is_free) wake_.Set();
        if (after == nullptr) CapacityChanged();
        auto waiting = node_changed_.extract(id);
        if (!waiting.empty()) waiting.mapped().NotifyAll();
      }));
  subscriptions_.push_back(context_.images.OnChange([this](const ImageName&) { wake_.Set(); }));
  for (const auto& [id, request] : context_.requests.all()) RequestChanged(id, nullptr, &request);
  wake_.Set();
  tasks_.Spawn("keep min-ready nodes", Run());
  tasks_.Spawn("look at min-ready anyway", Sweep());
}

Task<> MinReady::Stop() {
  subscriptions_.clear();
  co_await tasks_.Stop();
}

void MinReady::CapacityChanged() {
  capacity_changed_ = context_.loop.SteadyNow();
  wake_.Set();
}

Task<> MinReady::Run() {
  while (true) {
    co_await wake_.Wait();
    wake_.Reset();
    if (context_.nodes.synced() && context_.requests.synced()) {
      for (const auto& [name, label] : context_.config->common.labels) Check(name, label.min_ready);
    } else {
      tasks_.Spawn("wait for the caches", WakeLater(std::chrono::milliseconds(100)));
    }
    // Bursts of changes are answered once.
    co_await context_.loop.SleepFor(std::chrono::milliseconds(10));
  }
}

// For what nobody announces, such as a driver that can answer again, or a request that
// was gone with its session before we were told of its creation.
Task<> MinReady::Sweep() {
  while (true) {
    co_await context_.loop.SleepFor(context_.intervals.cleanup);
    if (context_.requests.synced()) {
      for (auto& [label, ids] : open_)
        std::erase_if(ids, [this](const RequestId& id) { return context_.requests.Find(id) == nullptr; });
    }
    wake_.Set();
  }
}

Task<> MinReady::WakeLater(Duration pause) {
  co_await context_.loop.SleepFor(pause);
  wake_.Set();
}

int MinReady::UnderWay(const LabelName& label) const {
  auto open = open_.find(label);
  auto submitting = submitting_.find(label);
  return (open == open_.end() ? 0 : static_cast<int>(open->second.size())) +
         (submitting == submitting_.end() ? 0 : submitting->second);
}

void MinReady::Check(const LabelName& label, int min_ready) {
  if (min_ready <= 0) return;
  if (IsHeldOff(label)) return;
  int missing = min_ready - static_cast<int>(context_.nodes.FreeCount(label)) - UnderWay(label);
  if (missing <= 0 || !is_available_(label)) return;
  for (; missing > 0; --missing) {
    ++submitting_[label];
    tasks_.Spawn("submit min-ready request", Submit(label));
  }
}

Task<> MinReady::Submit(LabelName label) {
  struct Done {
    MinReady& self;
    LabelName label;
    ~Done() { --self.submitting_[label]; }
  } done{*this, label};
  NodeRequest request;
  request.SetState(RequestState::kRequested, context_.loop.Now());
  request.node_types = {label};
  request.reuse = false;
  request.requestor = std::string(kMinReadyRequestor);
  request.event_id = context_.random.UuidHex();
  log::Logger logger = logger_.About({*request.event_id, "", ""});
  RequestId id = co_await context_.store.requests.Create("900", std::move(request), true);
  // Until the cache shows it, it must not be counted as missing.
  open_[label].insert(id);
  logger.Info("Requested a min-ready node of {}: {}", label, id);
  if (const store::StoredRequest* cached = context_.requests.Find(id)) RequestChanged(id, nullptr, cached);
}

void MinReady::RequestChanged(const RequestId& id, const store::StoredRequest* before,
                              const store::StoredRequest* after) {
  const NodeRequest* record = after != nullptr    ? &after->record
                              : before != nullptr ? &before->record
                                                  : nullptr;
  if (record == nullptr || record->requestor != kMinReadyRequestor || record->node_types.empty()) return;
  const LabelName& label = record->node_types.front();
  // A fulfilled one counts until its node is seen to be free.
  bool is_over = after == nullptr || after->record.state == RequestState::kFailed;
  if (is_over) {
    open_[label].erase(id);
    wake_.Set();
  } else {
    open_[label].insert(id);
  }
  bool is_decided = after != nullptr && (is_over || after->record.state == RequestState::kFulfilled);
  if (!is_decided || !IsOurs(*after) || !finishing_.insert(id).second) return;
  if (is_over) HoldOff(label);
  tasks_.Spawn("finish min-ready request", {"", id.value, ""}, Finish(id, after->record));
}

// Told by the session: the answer to its creation may have been lost.
bool MinReady::IsOurs(const store::StoredRequest& request) const {
  return request.revision.ephemeral_owner == context_.store.tree.client().session().id;
}

void MinReady::HoldOff(const LabelName& label) {
  failures_[label] = context_.loop.SteadyNow();
  for (Duration pause : {context_.intervals.min_ready_pause, context_.intervals.min_ready_holdoff})
    tasks_.Spawn("hold off min-ready", WakeLater(pause));
}

bool MinReady::IsHeldOff(const LabelName& label) const {
  auto failure = failures_.find(label);
  if (failure == failures_.end()) return false;
  bool has_changed = capacity_changed_ > failure->second;
  Duration pause = has_changed ? context_.intervals.min_ready_pause : context_.intervals.min_ready_holdoff;
  return context_.loop.SteadyNow() < failure->second + pause;
}

// Until it is done, or the request is gone with its session.
Task<> MinReady::Finish(RequestId id, NodeRequest request) {
  struct Done {
    std::set<RequestId>& finishing;
    RequestId id;
    ~Done() { finishing.erase(id); }
  } done{finishing_, id};
  Backoff backoff({}, context_.random);
  while (true) {
    std::exception_ptr error;
    try {
      co_await FinishOnce(id, request);
    } catch (...) {
      error = std::current_exception();
    }
    if (!error) co_return;
    if (VerdictOf(error) == Verdict::kCancelled) std::rethrow_exception(error);
    if (VerdictOf(error) == Verdict::kLostSession) co_return;
    logger_.Warning("Min-ready request {} could not be finished, trying again: {}", id, MessageOf(error));
    co_await context_.loop.SleepFor(backoff.Next());
  }
}

// The node is allocated to our request, so nobody else may touch it: no lock needed.
Task<> MinReady::FinishOnce(RequestId id, NodeRequest request) {
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

// Until our own cache shows what we wrote; else the node would be counted as missing
// between the end of its request and the news of its release.
Task<> MinReady::AwaitSeenFree(NodeId node, RequestId request) {
  while (true) {
    const store::StoredNode* cached = context_.nodes.Find(node);
    if (cached == nullptr || cached->record.allocated_to != request) co_return;
    co_await node_changed_[node].Wait();
  }
}

}  // namespace nodepool::launcher
