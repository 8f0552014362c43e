#include "launcher/leases/lease_term.h"

#include <algorithm>

#include "async/attempt.h"
#include "base/scope_exit.h"
#include "launcher/leases/lease_sweep.h"

namespace nodepool::launcher {
namespace {

// How long the web server that made a lease has for noting the request's id.
constexpr Duration kNoteGrace = std::chrono::seconds(2);
// How often, and how long in all, a node that another process has locked is tried; Zuul waits as long.
constexpr Duration kTakePause = std::chrono::milliseconds(200);
constexpr Duration kTakeTime = std::chrono::seconds(30);
constexpr Duration kRetryPause = std::chrono::seconds(5);
constexpr Duration kBusyPause = std::chrono::seconds(1);

}  // namespace

LeaseTerm::LeaseTerm(Context& context, log::Logger logger)
    : context_(context),
      logger_(std::move(logger)),
      expiry_(
          context.loop, "leases", {}, [this] { return ActOnTime(); }, logger_),
      tasks_(context.loop, logger_) {}

LeaseTerm::~LeaseTerm() = default;

Task<> LeaseTerm::Run() {
  co_await context_.caches.WaitSynced();
  Subscribe();
  GrantAll();
  std::vector<LeaseId> all;
  for (const auto& [id, lease] : context_.leases.all()) all.push_back(id);
  for (const LeaseId& id : all) Examine(id);
  tasks_.Spawn("sweep leases", SweepLeases(context_, logger_, [this](const LeaseId& id) {
                 Begin(id, Step::kDropNodes, DropNodes(id));
               }));
  co_await expiry_.Run();
}

Task<> LeaseTerm::Stop() {
  subscriptions_.clear();
  co_await tasks_.Stop();
}

void LeaseTerm::Subscribe() {
  subscriptions_.push_back(
      context_.leases.OnChange([this](const LeaseId& id, const store::StoredLease* before,
                                      const store::StoredLease* after) { LeaseChanged(id, before, after); }));
  subscriptions_.push_back(context_.requests.OnChange([this](const RequestId& id, const auto*, const auto*) {
    if (const store::StoredLease* lease = context_.leases.WaitingFor(id)) Examine(lease->id);
  }));
  subscriptions_.push_back(context_.nodes.OnChange([this](const NodeId& id, const auto*, const auto*) {
    if (const store::StoredLease* lease = context_.leases.Holding(id)) Examine(lease->id);
  }));
  // While ZooKeeper was away, clients could not renew.
  subscriptions_.push_back(context_.store.tree.client().OnSession([this](zk::SessionState state) {
    if (state == zk::SessionState::kConnected) GrantAll();
  }));
}

void LeaseTerm::GrantAll() {
  SteadyTime now = context_.loop.SteadyNow();
  for (const auto& [id, lease] : context_.leases.all()) deadlines_.Set(id, now + lease.record.duration());
  expiry_.Wake();
}

void LeaseTerm::LeaseChanged(const LeaseId& id, const store::StoredLease* before,
                             const store::StoredLease* after) {
  if (after == nullptr) {
    delayed_.Erase(id);
    return deadlines_.Erase(id);
  }
  bool is_written = before == nullptr || before->revision.mzxid != after->revision.mzxid;
  if (is_written) deadlines_.Set(id, context_.loop.SteadyNow() + after->record.duration());
  expiry_.Wake();
  Examine(id);
}

SteadyTime LeaseTerm::ActOnTime() {
  SteadyTime now = context_.loop.SteadyNow();
  EndExpired(now);
  for (const LeaseId& id : delayed_.TakeDue(now)) Examine(id);
  return std::min(deadlines_.First(), delayed_.First());
}

void LeaseTerm::EndExpired(SteadyTime now) {
  for (const LeaseId& id : deadlines_.TakeDue(now)) {
    const store::StoredLease* lease = context_.leases.Find(id);
    if (lease == nullptr) continue;
    bool must_wait = under_way_.contains(id) || !context_.leases.synced();
    if (must_wait) {
      deadlines_.Set(id, now + kBusyPause);
    } else {
      deadlines_.Set(id, now + kRetryPause);  // in case that it fails
      Expire(*lease);
    }
  }
}

void LeaseTerm::Expire(const store::StoredLease& lease) {
  Begin(lease.id, Step::kEnd, EndUnrenewed(lease.id, lease.revision.version));
}

void LeaseTerm::Examine(const LeaseId& id) {
  if (under_way_.contains(id)) {
    changed_.insert(id);
    return;
  }
  const store::StoredLease* lease = context_.leases.Find(id);
  if (lease == nullptr) return delayed_.Erase(id);
  Step step = StepOf(*lease);
  if (step == Step::kNone) return delayed_.Erase(id);
  SteadyTime now = context_.loop.SteadyNow();
  Duration age = now - delayed_.Begun(id, step, now);
  if (step == Step::kNoteRequest && age < kNoteGrace) return Delay(id, step, kNoteGrace - age);
  if (!delayed_.IsDelayed(id, now)) Begin(id, step, Carry(id, step));
}

void LeaseTerm::Delay(const LeaseId& id, Step step, Duration pause) {
  SteadyTime now = context_.loop.SteadyNow();
  delayed_.Begun(id, step, now);
  delayed_.Delay(id, now + pause);
  expiry_.Wake();
}

LeaseTerm::Step LeaseTerm::StepOf(const store::StoredLease& lease) const {
  const store::StoredRequest* request = context_.requests.Find(lease.record.request);
  auto node = [this](const NodeId& id) {
    const store::StoredNode* found = context_.nodes.Find(id);
    return found == nullptr ? nullptr : &found->record;
  };
  return sched::NextStep(lease.record, request == nullptr ? nullptr : &request->record, node);
}

void LeaseTerm::Begin(const LeaseId& id, Step step, Task<> work) {
  if (!under_way_.insert(id).second) return;
  tasks_.Spawn("lease " + id.value, Guarded(id, step, std::move(work)));
}

Task<> LeaseTerm::Guarded(LeaseId id, Step step, Task<> work) {
  ScopeExit done([&] {
    under_way_.erase(id);
    if (changed_.erase(id) > 0) Examine(id);
  });
  Outcome<> worked = co_await Attempt(std::move(work));
  if (worked) co_return;
  if (FailedWith(worked, Verdict::kLostSession)) worked.error().Rethrow();
  logger_.Error("Lease {} could not be moved on, trying again: {}", id, worked.error().message());
  Delay(id, step, kRetryPause);
}

Task<> LeaseTerm::Carry(LeaseId id, Step step) {
  using Work = Task<> (LeaseTerm::*)(LeaseId);
  static const std::map<Step, Work> works = {{Step::kNoteRequest, &LeaseTerm::NoteRequest},
                                             {Step::kTake, &LeaseTerm::Take},
                                             {Step::kFail, &LeaseTerm::Fail},
                                             {Step::kDropNodes, &LeaseTerm::DropNodes},
                                             {Step::kEnd, &LeaseTerm::End}};
  return (this->*works.at(step))(std::move(id));
}

// The only scan of all requests, after the death of a web server.
Task<> LeaseTerm::NoteRequest(LeaseId id) {
  co_await context_.requests.CatchUp();
  const auto& requests = context_.requests.all();
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
  SteadyTime now = context_.loop.SteadyNow();
  bool is_late = now - delayed_.Begun(id, Step::kTake, now) >= kTakeTime;
  store::Leases::Taking taking = co_await context_.store.leases.Take(id);
  if (taking.may_pass && !is_late) co_return Delay(id, Step::kTake, kTakePause);
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
    logger_.About({"", "", node.value})
        .Warning("Lease {} drops the node: it is not in use for it any more", id);
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
