#include "cli/requester.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <ostream>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "async/event.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "cli/client_marks.h"
#include "cli/interruption.h"
#include "cli/offered_labels.h"
#include "cli/page.h"
#include "listing/node_listing.h"
#include "model/decline_reasons.h"
#include "store/cache/node_cache.h"
#include "store/cache/request_cache.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;

constexpr Duration kNodeLockTimeout = std::chrono::seconds(30);
// How long giving back may take while ZooKeeper is unreachable; after that the end of the session does it.
constexpr Duration kGiveBackTimeout = std::chrono::seconds(10);

// The client of one request, from its creation to the return of its nodes.
class Requester {
 public:
  Requester(Context& context, RequestOptions options)
      : context_(context),
        options_(std::move(options)),
        started_(context.loop.SteadyNow()),
        requests_(context.loop, context.store.tree.client()),
        nodes_(context.loop, context.store.tree.client()) {}

  Task<int> Run();

 private:
  Task<> Create();
  Task<int> ServeAndGiveBack();
  Task<> Serve();
  Task<store::StoredRequest> AwaitDecision();
  Task<> LockAll(std::vector<NodeId> ids);
  Task<> SetInUse();
  Task<> HoldUntilReleased();
  Task<> GiveBack(store::LockedNode node);
  Task<> GiveBackAll();
  Task<> End();
  Task<> StopCaches();
  void Print(RequestId id);

  double Elapsed() const {
    return std::chrono::duration<double>(context_.loop.SteadyNow() - started_).count();
  }

  Context& context_;
  const RequestOptions options_;
  const SteadyTime started_;
  RequestId id_;
  bool request_exists_ = false;
  bool is_served_ = false;  // the nodes were locked and printed
  std::vector<store::LockedNode> held_;
  Event changed_;  // the condition that Serve waits for may have changed
  store::RequestCache requests_;
  store::NodeCache nodes_;
};

Task<int> Requester::Run() {
  std::string fault = co_await FaultOfLabels(context_, options_.labels);
  if (!fault.empty() && options_.wait) {
    context_.logger.Error("{}", fault);
    co_return 1;
  }
  if (!fault.empty()) context_.logger.Warning("{}; the request is made all the same", fault);
  co_await Create();
  if (!options_.wait) {
    if (options_.output == Output::kJson) {
      json::object result;
      result["request"] = id_.value;
      context_.out << result << std::endl;
    } else {
      context_.out << id_.value << std::endl;
    }
    co_return 0;
  }

  int status = co_await ServeAndGiveBack();
  co_return status;
}

Task<int> Requester::ServeAndGiveBack() {
  Subscription request_watch = requests_.OnChange([this](const RequestId& id, const auto*, const auto*) {
    if (id == id_) changed_.Set();
  });
  Subscription node_watch = nodes_.OnChange([this](const NodeId&, const auto*, const auto*) {
    if (!held_.empty()) changed_.Set();
  });
  Subscription session_watch =
      context_.store.tree.client().OnSession([this](zk::SessionState) { changed_.Set(); });
  auto end = [this] { return End(); };
  co_await WithCleanup(UntilInterrupted(Serve()), end);
  // An interruption before the nodes were ready is a failure, one afterwards the normal end.
  co_return is_served_ ? 0 : 1;
}

Task<> Requester::Create() {
  NodeRequest request;
  WallTime now = context_.loop.Now();
  request.SetState(RequestState::kRequested, now);
  request.created_time = now;
  request.node_types = options_.labels;
  request.requestor = options_.requestor;
  request.tenant_name = options_.tenant;
  request.provider = options_.provider;
  MarkRequest(request, context_.user);
  std::string precedence = fmt::format("{:03}", options_.priority);
  id_ = co_await context_.store.requests.Create(precedence, request, options_.wait);
  request_exists_ = true;
}

Task<> Requester::Serve() {
  requests_.Start();
  nodes_.Start();
  context_.logger.Info("Request {} made; waiting for its nodes", id_);
  store::StoredRequest decided = co_await AwaitDecision();
  if (decided.record.state == RequestState::kFailed) {
    context_.logger.Error("Request {} failed: {}", id_, WhyFailed(decided.record));
    co_return;
  }
  co_await LockAll(decided.record.nodes);
  co_await context_.store.requests.Delete(id_);
  request_exists_ = false;
  co_await SetInUse();
  is_served_ = true;
  Print(id_);
  co_await HoldUntilReleased();
}

Task<store::StoredRequest> Requester::AwaitDecision() {
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

Task<> Requester::LockAll(std::vector<NodeId> ids) {
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

Task<> Requester::SetInUse() {
  WallTime now = context_.loop.Now();
  RequestId id = id_;
  auto change = [now, id, user = context_.user](Node& node) {
    node.SetState(NodeState::kInUse, now);
    MarkNode(node, id, user);
    return store::Change::kWrite;
  };
  for (store::LockedNode& node : held_) co_await node.Update(change);
}

void Requester::Print(RequestId id) {
  using listing::Importance;
  listing::Listing listing{{{.key = "id", .title = "ID", .fit = {Importance::kAlways}},
                            {.key = "label", .title = "Label", .fit = listing::kName},
                            {.key = "provider", .title = "Provider", .fit = listing::kName},
                            {.key = "address", .title = "Address", .fit = {Importance::kHigh}},
                            {.key = "connection_port", .title = "Port", .fit = {Importance::kHigh}},
                            {.key = "username", .title = "Username", .fit = listing::kName}},
                           {}};
  bool is_json = options_.output == Output::kJson;
  if (is_json) listing.columns.push_back({.key = "host_keys", .title = "Host Keys"});
  for (const store::LockedNode& node : held_) {
    const Node& record = node.record();
    listing.rows.push_back({Cell::OfText(node.id().value), JsonNames(record.type),
                            Cell::OfText(record.provider.value), TextCell(record.interface_ip),
                            listing::ShownPort(record), TextCell(record.username)});
    if (is_json) listing.rows.back().emplace_back(json::value_from(record.host_keys));
  }
  if (is_json) {
    context_.out << fmt::format(R"({{"request":{},"nodes":{}}})", json::serialize(json::value(id.value)),
                                ToJson(listing, context_.loop.Now()))
                 << std::endl;
    return;
  }
  context_.out << fmt::format("Request {} fulfilled after {:.1f} s; the nodes are in use by this command.\n",
                              id, Elapsed())
               << TextOf(listing, PageOf(context_, Output::kTable)) << std::endl;
}

Task<> Requester::HoldUntilReleased() {
  SteadyTime end = options_.hold_for ? context_.loop.SteadyNow() + *options_.hold_for : SteadyTime::max();
  Clock& clock = context_.loop.clock();
  Clock::TimerId timer = options_.hold_for ? clock.CallAt(end, [this] { changed_.Set(); }) : 0;
  ScopeExit cancel_timer([&] { clock.CancelTimer(timer); });
  while (!held_.empty() && context_.loop.SteadyNow() < end) {
    changed_.Reset();
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
    if (!held_.empty()) co_await changed_.Wait();
  }
}

// A node that was never in use returns to its pool by unlocking alone.
Task<> Requester::GiveBack(store::LockedNode node) {
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

Task<> Requester::GiveBackAll() {
  while (!held_.empty()) {
    store::LockedNode node = std::move(held_.back());
    held_.pop_back();
    co_await GiveBack(std::move(node));
  }
  if (request_exists_) co_await context_.store.requests.Delete(id_);
  request_exists_ = false;
}

Task<> Requester::StopCaches() {
  co_await requests_.Stop();
  co_await nodes_.Stop();
}

Task<> Requester::End() {
  SteadyTime deadline = context_.loop.SteadyNow() + kGiveBackTimeout;
  auto stop = [this] { return StopCaches(); };
  co_await WithCleanup(WithDeadline(context_.loop, deadline, "giving the nodes back", GiveBackAll()), stop);
}

}  // namespace

Task<int> Request(Context& context, RequestOptions options) {
  auto requester = std::make_unique<Requester>(context, std::move(options));
  int status = co_await requester->Run();
  co_return status;
}

}  // namespace nodepool::cli
