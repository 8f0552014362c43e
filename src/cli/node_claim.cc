#include "cli/node_claim.h"

#include <fmt/format.h>

#include <utility>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "base/scope_exit.h"
#include "cli/client_marks.h"
#include "model/decline_reasons.h"

namespace nodepool::cli {
namespace {

constexpr Duration kNodeLockTimeout = std::chrono::seconds(30);
constexpr Duration kGiveBackTimeout = std::chrono::seconds(10);

}  // namespace

NodeRequest RequestFor(const NodeWish& wish, const Context& context) {
  NodeRequest request;
  WallTime now = context.loop.Now();
  request.SetState(RequestState::kRequested, now);
  request.created_time = now;
  request.node_types = wish.labels;
  request.requestor = wish.requestor;
  request.tenant_name = wish.tenant;
  request.provider = wish.provider;
  MarkRequest(request, context.user);
  return request;
}

std::string Precedence(const NodeWish& wish) { return fmt::format("{:03}", wish.priority); }

NodeClaim::NodeClaim(Context& context, NodeWish wish)
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

double NodeClaim::SecondsSinceBegin() const {
  return std::chrono::duration<double>(context_.loop.SteadyNow() - started_).count();
}

Task<> NodeClaim::Obtain() {
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

Task<store::StoredRequest> NodeClaim::AwaitDecision() {
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

Task<> NodeClaim::LockAll(std::vector<NodeId> ids) {
  for (const NodeId& id : ids) {
    SteadyTime deadline = context_.loop.SteadyNow() + kNodeLockTimeout;
    std::optional<store::LockedNode> node = co_await context_.store.nodes.Lock(id, deadline);
    if (!node) throw Error(Verdict::kConflict, fmt::format("Somebody else keeps the lock of node {}", id));
    RequestId owner = node->record().allocated_to;
    held_.push_back(std::move(*node));
    if (owner != id_) {
      throw Error(Verdict::kConflict,
                  fmt::format("Node {} is allocated to \"{}\", not to our request {}", id, owner, id_));
    }
  }
}

Task<> NodeClaim::SetInUse() {
  WallTime now = context_.loop.Now();
  RequestId id = id_;
  auto change = [now, id, user = context_.user](Node& node) {
    node.SetState(NodeState::kInUse, now);
    MarkNode(node, id, user);
    return store::Change::kWrite;
  };
  for (store::LockedNode& node : held_) co_await node.Update(change);
}

Task<> NodeClaim::Keep(SteadyTime end) {
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
Task<> NodeClaim::GiveBackWanted() {
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
Task<> NodeClaim::GiveBack(store::LockedNode node) {
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

Task<> NodeClaim::GiveBackAll() {
  while (!held_.empty()) {
    store::LockedNode node = std::move(held_.back());
    held_.pop_back();
    co_await GiveBack(std::move(node));
  }
  if (request_exists_) co_await context_.store.requests.Delete(id_);
  request_exists_ = false;
}

Task<> NodeClaim::StopCaches() {
  co_await requests_.Stop();
  co_await nodes_.Stop();
}

Task<> NodeClaim::End() {
  SteadyTime deadline = context_.loop.SteadyNow() + kGiveBackTimeout;
  auto stop = [this] { return StopCaches(); };
  co_await WithCleanup(WithDeadline(context_.loop, deadline, "giving the nodes back", GiveBackAll()), stop);
}

}  // namespace nodepool::cli
