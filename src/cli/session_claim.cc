#include "cli/session_claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "base/scope_exit.h"
#include "cli/own_requests.h"
#include "model/decline_reasons.h"

namespace nodepool::cli {
namespace {

constexpr Duration kNodeLockTimeout = std::chrono::seconds(30);
constexpr int kUsualPriority = 200;
constexpr const char* kUsualRequestor = "nodepool";

}  // namespace

NodeRequest RequestFor(const NodeWish& wish, const Context& context) {
  NodeRequest request;
  WallTime now = context.loop.Now();
  request.SetState(RequestState::kRequested, now);
  request.created_time = now;
  request.node_types = wish.labels;
  request.requestor = wish.requestor.value_or(kUsualRequestor);
  request.tenant_name = wish.tenant;
  request.provider = wish.provider;
  MarkRequest(request, context.user);
  return request;
}

std::string Precedence(const NodeWish& wish) {
  return fmt::format("{:03}", wish.priority.value_or(kUsualPriority));
}

SessionClaim::SessionClaim(Context& context, NodeWish wish)
    : context_(context),
      wish_(std::move(wish)),
      started_(context.loop.SteadyNow()),
      requests_(context.loop, context.store.tree.client()),
      nodes_(context.loop, context.store.tree.client()) {
  request_watch_ = requests_.OnChange([this](const RequestId& id, const auto*, const auto*) {
    if (id == id_) changed_.Set();
  });
  node_watch_ = nodes_.OnChange([this](const NodeId&, const auto*, const auto*) {
    if (!held_.empty()) changed_.Set();
  });
  session_watch_ = context.store.tree.client().OnSession([this](zk::SessionState) { changed_.Set(); });
}

double SessionClaim::SecondsSinceBegin() const {
  return std::chrono::duration<double>(context_.loop.SteadyNow() - started_).count();
}

std::vector<ClaimedNode> SessionClaim::nodes() const {
  std::vector<ClaimedNode> nodes;
  for (const store::LockedNode& node : held_) nodes.push_back({node.id(), node.record()});
  return nodes;
}

// Names sort in the order in which requests are served.
std::size_t SessionClaim::CountBefore() const {
  return static_cast<std::size_t>(std::ranges::count_if(requests_.all(), [&](const auto& entry) {
    return entry.first < id_ && entry.second.record.state == RequestState::kRequested;
  }));
}

std::size_t SessionClaim::CountReady() const {
  return static_cast<std::size_t>(std::ranges::count_if(nodes_.OfRequest(id_), [&](const NodeId& node) {
    return nodes_.Find(node)->record.state == NodeState::kReady;
  }));
}

std::string SessionClaim::Progress() const {
  const store::StoredRequest* request = requests_.Find(id_);
  if (request == nullptr) return "asking";
  if (request->record.state == RequestState::kPending) return BootingText(CountReady(), wish_.labels.size());
  return WaitingText(fmt::format("waiting, {} before", CountBefore()), why_);
}

std::string SessionClaim::WhyWaiting() const {
  const store::StoredRequest* request = requests_.Find(id_);
  return request == nullptr ? "" : why_;
}

Task<> SessionClaim::AskForProgress() {
  LaunchersAnswers answers = co_await AskAboutRequests(context_);
  why_ = DecidingText(answers, id_);
}

Task<> SessionClaim::Obtain() {
  NodeRequest request = RequestFor(wish_, context_);
  id_ = co_await context_.store.requests.Create(Precedence(wish_), request, true);
  request_exists_ = true;
  requests_.Start();
  nodes_.Start();
  context_.logger.Info("Request {} made; waiting for its nodes", id_);
  store::StoredRequest decided = co_await AwaitDecision();
  if (decided.record.state == RequestState::kFailed) {
    throw Error(Verdict::kFail, fmt::format("Request {} failed: {}", id_, WhyFailed(decided.record)));
  }
  co_await LockAll(decided.record.nodes);
  co_await context_.store.requests.Delete(id_);
  request_exists_ = false;
  co_await SetInUse();
}

Task<store::StoredRequest> SessionClaim::AwaitDecision() {
  co_await requests_.WaitSynced();
  while (true) {
    changed_.Reset();
    const store::StoredRequest* seen = requests_.Find(id_);
    if (!seen && requests_.synced()) {
      request_exists_ = false;
      throw Error(Verdict::kNotFound, fmt::format("Request {} was removed before it was served", id_));
    }
    if (seen &&
        (seen->record.state == RequestState::kFulfilled || seen->record.state == RequestState::kFailed)) {
      co_return *seen;
    }
    co_await changed_.Wait();
  }
}

Task<> SessionClaim::LockAll(std::vector<NodeId> ids) {
  for (const NodeId& id : ids) {
    SteadyTime deadline = context_.loop.SteadyNow() + kNodeLockTimeout;
    std::optional<store::LockedNode> node = co_await context_.store.nodes.Lock(id, deadline);
    if (!node) throw Error(Verdict::kConflict, fmt::format("node {} is locked by another client", id));
    RequestId owner = node->record().allocated_to;
    held_.push_back(std::move(*node));
    if (owner != id_) {
      throw Error(Verdict::kConflict,
                  fmt::format("Node {} is allocated to \"{}\", not to our request {}", id, owner, id_));
    }
  }
}

Task<> SessionClaim::SetInUse() {
  WallTime now = context_.loop.Now();
  RequestId id = id_;
  auto change = [now, id, user = context_.user](Node& node) {
    node.SetState(NodeState::kInUse, now);
    MarkNode(node, id, user);
    return store::Change::kWrite;
  };
  for (store::LockedNode& node : held_) co_await node.Update(change);
}

Task<> SessionClaim::Keep(SteadyTime end) {
  Clock& clock = context_.loop.clock();
  Clock::TimerId timer = end < SteadyTime::max() ? clock.CallAt(end, [this] { changed_.Set(); }) : 0;
  ScopeExit cancel_timer([&] { clock.CancelTimer(timer); });
  while (!held_.empty() && context_.loop.SteadyNow() < end) {
    changed_.Reset();
    co_await GiveBackWanted();
    if (!held_.empty()) co_await changed_.Wait();
  }
}

// Gives back what `nodepool release` asks for, and drops what is gone.
Task<> SessionClaim::GiveBackWanted() {
  for (std::size_t i = 0; i < held_.size();) {
    if (!held_[i].is_held()) {
      held_.clear();
      throw Error(Verdict::kLostSession, "The ZooKeeper session ended, and with it the claim to the nodes");
    }
    const store::StoredNode* seen = nodes_.Find(held_[i].id());
    bool is_gone = !seen && nodes_.synced();
    if (is_gone) context_.logger.Warning("Node {} was removed while it was in use", held_[i].id());
    if (!is_gone && !(seen && IsReleaseRequested(seen->record))) {
      ++i;
      continue;
    }
    store::LockedNode node = std::move(held_[i]);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!is_gone) co_await GiveBack(std::move(node));
  }
}

// A node that was never in use returns to its pool by unlocking alone.
Task<> SessionClaim::GiveBack(store::LockedNode node) {
  WallTime now = context_.loop.Now();
  auto change = [now](Node& record) {
    if (record.state != NodeState::kInUse) return store::Change::kSkip;
    record.SetState(NodeState::kUsed, now);
    return store::Change::kWrite;
  };
  co_await node.Update(change);
  co_await node.Unlock();
  context_.logger.Info("Node {} given back", node.id());
}

Task<> SessionClaim::GiveBackAll() {
  while (!held_.empty()) {
    store::LockedNode node = std::move(held_.back());
    held_.pop_back();
    co_await GiveBack(std::move(node));
  }
  if (request_exists_) co_await context_.store.requests.Delete(id_);
  request_exists_ = false;
}

Task<> SessionClaim::StopCaches() {
  co_await requests_.Stop();
  co_await nodes_.Stop();
}

Task<> SessionClaim::End() {
  SteadyTime deadline = context_.loop.SteadyNow() + kGiveBackTimeout;
  auto stop = [this] { return StopCaches(); };
  co_await WithCleanup(WithDeadline(context_.loop, deadline, "giving the nodes back", GiveBackAll()), stop);
}

}  // namespace nodepool::cli
