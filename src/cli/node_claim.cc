#include "cli/node_claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <utility>

#include "async/deadline.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "listing/record_listing.h"
#include "model/json.h"
#include "model/node_request.h"
#include "sched/requests/question.h"

namespace nodepool::cli {

std::string BootingText(std::size_t ready, std::size_t wanted) {
  return fmt::format("booting, {} of {} ready", ready, wanted);
}

std::string WaitingText(std::string begin, std::string waits) {
  return waits.empty() ? std::move(begin) : begin + "; " + Visible(waits);
}

namespace {

std::string FaultOfProvider(const ProviderName& wanted, const std::vector<Component>& pools) {
  std::set<std::string> served;
  for (const Component& pool : pools) served.insert(pool.provider_name.value);
  if (served.empty() || served.contains(wanted.value)) return "";
  std::optional<std::string> nearest = NearestSpelling(wanted.value, {served.begin(), served.end()});
  return fmt::format("no launcher serves provider {}{}", Excerpt(wanted.value),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

}  // namespace

Task<std::string> FaultOfWish(Context& context, NodeWish wish) {
  std::vector<Component> pools = co_await context.store.components.List(ComponentKind::kPool);
  std::vector<Component> launchers = co_await context.store.components.List(ComponentKind::kLauncher);
  if (!wish.provider.empty()) {
    std::string fault = FaultOfProvider(wish.provider, pools);
    if (!fault.empty()) co_return fault;
  }
  std::vector<const Component*> components;
  for (const Component& component : pools) components.push_back(&component);
  for (const Component& component : launchers) components.push_back(&component);
  co_return sched::FaultOfLabels(wish.labels, components);
}

namespace {

constexpr Duration kStep = std::chrono::seconds(1);
// It is asked each time that so many steps have passed.
constexpr int kStepsPerQuestion = 3;

Task<> RemoveLine(std::ostream& terminal) {
  terminal << "\r\x1b[K" << std::flush;
  co_return;
}

Task<> Rewrite(Console& console, NodeClaim& claim, std::ostream& terminal) {
  SteadyTime started = console.loop.SteadyNow();
  for (int step = 0;; ++step) {
    if (step % kStepsPerQuestion == 1) co_await claim.AskForProgress();
    std::chrono::duration<double> passed = console.loop.SteadyNow() - started;
    std::string line = fmt::format("{:.0f} s: {}", passed.count(), claim.Progress());
    if (std::optional<std::size_t> width = console.terminal_width(); width && line.size() >= *width) {
      line.resize(*width > 0 ? *width - 1 : 0);
    }
    terminal << "\r\x1b[K" << line << std::flush;
    co_await console.loop.SleepFor(kStep);
  }
}

// Keeps a line current until it is cancelled, and removes it then.
Task<> ShowWaitLine(Console& console, NodeClaim& claim, std::ostream& terminal) {
  auto remove = [&terminal] { return RemoveLine(terminal); };
  co_await WithCleanup(Rewrite(console, claim, terminal), remove);
}

// Most requests are served before the first question.
constexpr Duration kQuestionPause = std::chrono::seconds(5);
constexpr Duration kReasonPause = std::chrono::minutes(1);

Task<> LogWhy(Console& console, NodeClaim& claim) {
  std::string logged;
  while (true) {
    co_await console.loop.SleepFor(kQuestionPause);
    co_await claim.AskForProgress();
    std::string why = claim.WhyWaiting();
    if (why.empty() || why == logged) continue;
    console.logger.Info("Waiting: {}", why);
    logged = std::move(why);
    co_await console.loop.SleepFor(kReasonPause - kQuestionPause);
  }
}

}  // namespace

Task<> ObtainShowingWhy(Console& console, NodeClaim& claim) {
  TaskGroup showing(console.loop, console.logger);
  if (console.progress != nullptr) {
    showing.Spawn("why the request waits", ShowWaitLine(console, claim, *console.progress));
  } else {
    showing.Spawn("why the request waits", LogWhy(console, claim));
  }
  auto stop = [&showing] { return showing.Stop(); };
  co_await WithCleanup(claim.Obtain(), stop);
}

namespace {

namespace json = boost::json;

constexpr std::string_view kTool = "nodepool request";

const json::value* Find(const json::value& value, std::string_view key) {
  const json::object* object = value.if_object();
  return object ? object->if_contains(key) : nullptr;
}

bool NamesUser(const json::value& mark, const std::string& user) {
  const json::value* name = Find(mark, "user");
  return name && name->is_string() && name->as_string() == user;
}

}  // namespace

void MarkRequest(NodeRequest& request, const std::string& user) {
  request.requestor_data = json::object({{"tool", kTool}, {"user", user}});
}

bool IsMarked(const NodeRequest& request) {
  const json::value data = request.requestor_data.value();
  const json::value* tool = Find(data, "tool");
  return tool && tool->is_string() && tool->as_string() == kTool;
}

bool IsMarkedBy(const NodeRequest& request, const std::string& user) {
  return IsMarked(request) && NamesUser(request.requestor_data.value(), user);
}

void MarkNode(Node& node, const RequestId& request, const std::string& user) {
  node.user_data = json::object({{"nodepool_request", request.value}, {"user", user}, {"release", false}});
}

bool IsMarked(const Node& node) { return Find(node.user_data.value(), "nodepool_request") != nullptr; }

bool IsMarkedBy(const Node& node, const std::string& user) {
  return IsMarked(node) && NamesUser(node.user_data.value(), user);
}

RequestId RequestIn(const Node& node) {
  const json::value data = node.user_data.value();
  const json::value* id = Find(data, "nodepool_request");
  return RequestId(id != nullptr && id->is_string() ? std::string(id->as_string()) : "");
}

void AskForRelease(Node& node) {
  json::value data = node.user_data.value();
  data.as_object()["release"] = true;
  node.user_data = std::move(data);
}

bool IsReleaseRequested(const Node& node) {
  const json::value data = node.user_data.value();
  const json::value* release = Find(data, "release");
  return IsMarked(node) && release && release->is_bool() && release->as_bool();
}

namespace {

using listing::Importance;
using listing::Listing;

template <class Ids>
boost::json::array NamesOf(const Ids& ids) {
  boost::json::array names;
  for (const auto& id : ids) names.emplace_back(id.value);
  return names;
}

}  // namespace

Task<std::vector<OwnRequest>> OwnRequests(Context& context, const store::NodeCache& nodes) {
  std::vector<OwnRequest> requests;
  std::set<RequestId> seen;
  std::vector<RequestId> ids = co_await context.store.requests.List();
  for (const RequestId& id : ids) {
    std::optional<store::StoredRequest> request = co_await context.store.requests.Read(id);
    if (!request || !IsMarkedBy(request->record, context.user)) continue;
    const NodeRequest& record = request->record;
    const store::FewNodes& allocated = nodes.OfRequest(id);
    requests.push_back({.id = id,
                        .is_there = true,
                        .state = record.state ? std::string(ToString(*record.state)) : "",
                        .labels = {record.node_types.begin(), record.node_types.end()},
                        .nodes = {allocated.begin(), allocated.end()},
                        .since = listing::WaitsSince(record)});
    seen.insert(id);
  }
  // A client deletes its request once it has locked the nodes; from then on only these show it.
  std::map<RequestId, OwnRequest> without_record;
  for (const auto& [id, node] : nodes.all()) {
    const Node& record = node.record;
    if (record.state != NodeState::kInUse || !IsMarkedBy(record, context.user)) continue;
    RequestId request = RequestIn(record);
    if (seen.contains(request)) continue;
    OwnRequest& own = without_record[request];
    own.id = request;
    own.state = ToString(NodeState::kInUse);
    own.labels.insert(record.type.begin(), record.type.end());
    own.nodes.insert(id);
    own.since = record.state_time;
  }
  for (auto& [id, own] : without_record) requests.push_back(std::move(own));
  co_return requests;
}

Listing ListOwnRequests(const std::vector<OwnRequest>& requests) {
  Listing listing{
      {{.key = "id", .title = "Request", .fit = {Importance::kAlways}},
       {.key = "state", .title = "State", .kind = listing::Kind::kState, .fit = {Importance::kHigh}},
       {.key = "labels", .title = "Labels", .kind = listing::Kind::kLabel, .fit = listing::kName},
       {.key = "nodes", .title = "Nodes", .fit = {Importance::kHigh, 10}},
       {.key = "age", .title = "Age", .kind = listing::Kind::kTime, .fit = {Importance::kHigh}}},
      {}};
  for (const OwnRequest& own : requests) {
    listing.rows.push_back(
        {own.id.value, own.state, NamesOf(own.labels), NamesOf(own.nodes), ToSeconds(own.since)});
  }
  return listing;
}

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
