#include "launcher/leases/lease_term.h"

#include <fmt/format.h>

#include <algorithm>

#include "launcher/leases/lease_sweep.h"
#include "sched/leases/lease_step.h"

namespace nodepool::launcher {
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

}  // namespace nodepool::launcher
