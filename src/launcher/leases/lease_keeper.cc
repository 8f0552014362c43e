#include "launcher/leases/lease_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "async/task.h"
#include "launcher/elected.h"
#include "sched/leases/lease_step.h"
#include "store/leases.h"

namespace nodepool::launcher {

void LeaseDeadlines::Set(const LeaseId& id, SteadyTime deadline) {
  Erase(id);
  by_id_.emplace(id, deadline);
  in_order_.emplace(deadline, id);
}

void LeaseDeadlines::Erase(const LeaseId& id) {
  auto entry = by_id_.find(id);
  if (entry == by_id_.end()) return;
  in_order_.erase({entry->second, id});
  by_id_.erase(entry);
}

SteadyTime LeaseDeadlines::First() const {
  return in_order_.empty() ? SteadyTime::max() : in_order_.begin()->first;
}

std::vector<LeaseId> LeaseDeadlines::TakeDue(SteadyTime now) {
  std::vector<LeaseId> due;
  while (First() <= now) {
    due.push_back(in_order_.begin()->second);
    Erase(due.back());
  }
  return due;
}

namespace {

constexpr std::size_t kNodesPerRead = 100;

// Something that names a lease.
template <class Id>
struct Named {
  Id id;
  LeaseId lease;
};

struct Findings {
  std::vector<Named<NodeId>> held;         // their leases have them
  std::vector<Named<NodeId>> orphans;      // their leases do not
  std::vector<Named<RequestId>> requests;  // their leases are gone
};

Findings Find(const Context& context) {
  Findings findings;
  for (const NodeId& id : context.caches.nodes.InState(NodeState::kInUse)) {
    std::optional<LeaseId> lease = LeaseOf(context.caches.nodes.Find(id)->record);
    if (!lease) continue;
    const store::StoredLease* holder = context.caches.leases.Holding(id);
    bool is_held = holder != nullptr && holder->id == *lease;
    (is_held ? findings.held : findings.orphans).push_back({id, *lease});
  }
  for (const auto& [id, request] : context.caches.requests.all()) {
    std::optional<LeaseId> lease = LeaseOf(request.record);
    if (lease && context.caches.leases.Find(*lease) == nullptr) findings.requests.push_back({id, *lease});
  }
  return findings;
}

Task<> DropLost(Context& context, const std::vector<Named<NodeId>>& held,
                const std::function<void(const LeaseId&)>& drop) {
  for (std::size_t begin = 0; begin < held.size(); begin += kNodesPerRead) {
    std::size_t end = std::min(held.size(), begin + kNodesPerRead);
    std::vector<NodeId> ids;
    for (std::size_t i = begin; i < end; ++i) ids.push_back(held[i].id);
    std::vector<store::LockedView> views =
        co_await store::ReadLockedViews(context.store.tree, std::move(ids));
    for (std::size_t i = begin; i < end; ++i) {
      if (!views[i - begin].is_locked_by(OwnerText(held[i].lease))) drop(held[i].lease);
    }
  }
}

Task<> Pass(Context& context, const log::Logger& logger, const std::function<void(const LeaseId&)>& drop) {
  Findings findings = Find(context);
  for (const auto& [id, lease] : findings.orphans) {
    bool is_freed = co_await context.store.leases.FreeOrphan(id, lease);
    if (is_freed) logger.About(log::OfNode(id)).Warning("Lease {} is gone; its node is given back", lease);
  }
  for (const auto& [id, lease] : findings.requests) {
    bool is_deleted = co_await context.store.leases.DeleteOrphan(id, lease);
    if (is_deleted) logger.Warning("Lease {} is gone; its request {} is deleted", lease, id);
  }
  co_await DropLost(context, findings.held, drop);
}

}  // namespace

Task<> SweepLeases(Context& context, log::Logger logger, std::function<void(const LeaseId&)> drop) {
  while (true) {
    if (context.caches.synced()) {
      Outcome<> passed = co_await Attempt(Pass(context, logger, drop));
      if (FailedWith(passed, Verdict::kLostSession)) passed.error().Rethrow();
      if (!passed)
        logger.Error("The sweep of leases failed, the next one follows: {}", passed.error().message());
    }
    co_await context.loop.SleepFor(context.intervals.cleanup);
  }
}

namespace {

// How long the web server that made a lease has for noting the request's id.
constexpr Duration kNoteGrace = std::chrono::seconds(2);
// How often, and how long in all, a node that another process has locked is tried; Zuul waits as long.
constexpr Duration kTakePause = std::chrono::milliseconds(200);
constexpr Duration kTakeTime = std::chrono::seconds(30);
constexpr Backoff::Settings kRetryPauses{.initial = std::chrono::seconds(1), .max = std::chrono::seconds(30)};
constexpr Duration kEndPause = std::chrono::seconds(5);
constexpr Duration kBusyPause = std::chrono::seconds(1);

std::string StepFailure(const LeaseId& id) {
  return fmt::format("Lease {} could not be moved on, trying again", id);
}

}  // namespace

LeaseTerm::LeaseTerm(Context& context, log::Logger logger)
    : context_(context),
      logger_(std::move(logger)),
      steps_(context.loop, context.random, logger_,
             {.failure = &StepFailure,
              .ids_of = [](const LeaseId&) { return log::Ids(); },
              .pauses = kRetryPauses},
             [this](const LeaseId& id) { return WorkFor(id); }),
      expiry_(
          context.loop, "leases", {}, [this] { return EndExpired(); }, logger_),
      tasks_(context.loop, logger_) {}

LeaseTerm::~LeaseTerm() = default;

Task<> LeaseTerm::Run() {
  co_await context_.caches.WaitSynced();
  Subscribe();
  GrantAll();
  std::vector<LeaseId> all;
  for (const auto& [id, lease] : context_.caches.leases.all()) all.push_back(id);
  for (const LeaseId& id : all) steps_.Notice(id);
  tasks_.Spawn("sweep leases", SweepLeases(context_, logger_, [this](const LeaseId& id) {
                 steps_.Do(id, {"drop lost nodes of a lease", DropNodes(id)});
               }));
  co_await expiry_.Run();
}

Task<> LeaseTerm::Stop() {
  subscriptions_.clear();
  co_await tasks_.Stop();
  co_await steps_.Stop();
}

void LeaseTerm::Subscribe() {
  subscriptions_.push_back(context_.caches.leases.OnChange(
      [this](const LeaseId& id, const store::StoredLease* before, const store::StoredLease* after) {
        LeaseChanged(id, before, after);
      }));
  subscriptions_.push_back(
      context_.caches.requests.OnChange([this](const RequestId& id, const auto*, const auto*) {
        if (const store::StoredLease* lease = context_.caches.leases.WaitingFor(id)) steps_.Notice(lease->id);
      }));
  subscriptions_.push_back(context_.caches.nodes.OnChange([this](const NodeId& id, const auto*, const auto*) {
    if (const store::StoredLease* lease = context_.caches.leases.Holding(id)) steps_.Notice(lease->id);
  }));
  // While ZooKeeper was away, clients could not renew.
  subscriptions_.push_back(context_.store.tree.client().OnSession([this](zk::SessionState state) {
    if (state == zk::SessionState::kConnected) GrantAll();
  }));
}

void LeaseTerm::GrantAll() {
  SteadyTime now = context_.loop.SteadyNow();
  for (const auto& [id, lease] : context_.caches.leases.all())
    deadlines_.Set(id, now + lease.record.duration());
  expiry_.Wake();
}

void LeaseTerm::LeaseChanged(const LeaseId& id, const store::StoredLease* before,
                             const store::StoredLease* after) {
  if (after == nullptr) return deadlines_.Erase(id);
  bool is_written = before == nullptr || before->revision.mzxid != after->revision.mzxid;
  if (is_written) deadlines_.Set(id, context_.loop.SteadyNow() + after->record.duration());
  expiry_.Wake();
  steps_.Notice(id);
}

SteadyTime LeaseTerm::EndExpired() {
  SteadyTime now = context_.loop.SteadyNow();
  for (const LeaseId& id : deadlines_.TakeDue(now)) {
    const store::StoredLease* lease = context_.caches.leases.Find(id);
    if (lease == nullptr) continue;
    bool must_wait = steps_.IsUnderWay(id) || !context_.caches.leases.synced();
    deadlines_.Set(id, now + (must_wait ? kBusyPause : kEndPause));  // in case that it fails
    if (must_wait) continue;
    steps_.Do(id, {"end a lease", EndUnrenewed(id, lease->revision.version)});
  }
  return deadlines_.First();
}

std::optional<LeaseTerm::Steps::Work> LeaseTerm::WorkFor(const LeaseId& id) {
  const store::StoredLease* lease = context_.caches.leases.Find(id);
  if (lease == nullptr) return std::nullopt;
  const store::StoredRequest* request = context_.caches.requests.Find(lease->record.request);
  auto node = [this](const NodeId& node_id) {
    const store::StoredNode* found = context_.caches.nodes.Find(node_id);
    return found == nullptr ? nullptr : &found->record;
  };
  switch (sched::NextStep(lease->record, request == nullptr ? nullptr : &request->record, node)) {
    case sched::LeaseStep::kNone:
      return std::nullopt;
    case sched::LeaseStep::kNoteRequest:
      return Steps::Work{"note a lease's request", NoteRequest(id), kNoteGrace};
    case sched::LeaseStep::kTake:
      return Steps::Work{"take a lease's nodes", Take(id)};
    case sched::LeaseStep::kFail:
      return Steps::Work{"fail a lease", Fail(id)};
    case sched::LeaseStep::kDropNodes:
      return Steps::Work{"drop lost nodes of a lease", DropNodes(id)};
    case sched::LeaseStep::kEnd:
      return Steps::Work{"end a lease", End(id)};
  }
  return std::nullopt;
}

// The only scan of all requests, after the death of a web server.
Task<> LeaseTerm::NoteRequest(LeaseId id) {
  co_await context_.caches.requests.CatchUp();
  const auto& requests = context_.caches.requests.all();
  auto found = std::ranges::find_if(
      requests, [&](const auto& entry) { return entry.second.record.event_id == id.value; });
  if (found == requests.end()) co_return co_await Fail(std::move(id));
  auto note = [request = found->first](Lease& lease) {
    if (lease.state != LeaseState::kWaiting || !lease.request.empty()) return store::Change::kSkip;
    lease.request = request;
    return store::Change::kWrite;
  };
  co_await context_.store.leases.Update(id, note);
}

Task<> LeaseTerm::Take(LeaseId id) {
  bool is_late = steps_.NeededFor(id) >= kTakeTime;
  store::Leases::Taking taking = co_await context_.store.leases.Take(id);
  if (taking.may_pass && !is_late) co_return steps_.Pause(id, kTakePause);
  if (taking.is_taken) {
    logger_.Info("Lease {}: its nodes are handed over", id);
    std::vector<NodeId> lost = co_await context_.store.leases.DropLostNodes(id);
    if (lost.empty()) co_return;
    taking.obstacle = fmt::format("node {} is locked by another process", lost.front());
  }
  if (taking.obstacle.empty()) co_return;
  bool has_failed = co_await context_.store.leases.Fail(id, taking.obstacle);
  if (has_failed) logger_.Warning("Lease {} fails: {}", id, taking.obstacle);
}

Task<> LeaseTerm::Fail(LeaseId id) {
  bool has_failed = co_await context_.store.leases.FailUnserved(id);
  if (has_failed) logger_.Info("Lease {} fails with its request", id);
}

Task<> LeaseTerm::DropNodes(LeaseId id) {
  std::vector<NodeId> lost = co_await context_.store.leases.DropLostNodes(id);
  for (const NodeId& node : lost) {
    logger_.About(log::OfNode(node)).Warning("Lease {} drops the node: it is not in use for it any more", id);
  }
}

Task<> LeaseTerm::End(LeaseId id) {
  bool has_ended = co_await context_.store.leases.End(id);
  if (has_ended) logger_.Info("Lease {} has ended; its nodes are given back", id);
}

Task<> LeaseTerm::EndUnrenewed(LeaseId id, std::int32_t version) {
  bool has_ended = co_await context_.store.leases.End(id, version);
  if (has_ended) logger_.Info("Lease {} was not renewed and has expired; its nodes are given back", id);
}

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
