#include "launcher/jobs/job_events.h"

#include <fmt/format.h>

#include "async/task.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "launcher/elected.h"
#include "net/zmq_subscriber.h"

namespace nodepool::launcher {
namespace {

using store::NoteResult;

constexpr Duration kMemory = std::chrono::seconds(60);
constexpr std::size_t kMaxHeard = 1000;
constexpr Duration kComplaintPause = std::chrono::seconds(60);
constexpr int kAttempts = 10;  // while other launchers write hold notes

JobDecision Ignored(std::string why, NodeId node = {}) { return {false, std::move(node), std::move(why)}; }

}  // namespace

JobEvents::JobEvents(Context& context)
    : context_(context), logger_("nodepool.NodeUpdateListener"), tasks_(context.loop, logger_) {
  subscriptions_.push_back(context_.caches.jobs.OnRule(
      [this](const JobId& id, const auto*, const store::StoredJobRule* rule) { SetRule(id, rule); }));
  subscriptions_.push_back(context_.caches.jobs.OnHoldNote(
      [this](const NodeId& id, const auto*, const auto*) { CheckHoldNote(id); }));
  subscriptions_.push_back(context_.caches.nodes.OnChange(
      [this](const NodeId& id, const store::StoredNode*, const store::StoredNode*) { CheckHoldNote(id); }));
}

JobEvents::~JobEvents() = default;

void JobEvents::Start() {
  tasks_.Spawn("sweep hold notes", Sweep());
  Reconfigure();
}

void JobEvents::Reconfigure() {
  std::set<std::string> publishers;
  if (context_.duties.deletes) {
    const std::vector<std::string>& configured = context_.config->common.zmq_publishers;
    publishers.insert(configured.begin(), configured.end());
  }
  for (const auto& [endpoint, task] : listening_) {
    if (!publishers.contains(endpoint)) tasks_.Cancel(task);
  }
  std::erase_if(listening_, [&](const auto& entry) { return !publishers.contains(entry.first); });
  for (const std::string& endpoint : publishers) {
    if (!listening_.contains(endpoint)) listening_.emplace(endpoint, Listen(endpoint));
  }
  if (listening_.empty() && competing_) {
    tasks_.Cancel(*competing_);
    competing_.reset();
  } else if (!listening_.empty() && !competing_) {
    competing_ = tasks_.Spawn("contend for the handling of job events",
                              LeadWhenElected(
                                  context_.store.jobs.Election(Contender(context_)),
                                  [this] { return Lead(); }, "Handling job events", logger_));
  }
}

TaskGroup::TaskId JobEvents::Listen(const std::string& endpoint) {
  logger_.Info("Listening to job events of {}", Excerpt(endpoint));
  auto receive = [this](std::string_view message) { Receive(message); };
  return tasks_.Spawn("listen to job events of " + Excerpt(endpoint),
                      net::ReceiveFromPublisher(context_.loop, endpoint, receive, logger_));
}

Task<> JobEvents::Stop() {
  subscriptions_.clear();
  co_await tasks_.Stop();
}

void JobEvents::SetRule(const JobId& id, const store::StoredJobRule* rule) {
  if (rule == nullptr) return rules_.Erase(id);
  std::optional<Error> fault = rules_.Set(id, rule->record);
  if (fault) logger_.Error("The rule {} about jobs is ignored: {}", id, fault->message());
}

void JobEvents::Complain(const std::string& fault) {
  SteadyTime now = context_.loop.SteadyNow();
  if (now < next_complaint_) {
    ++silent_complaints_;
    return;
  }
  next_complaint_ = now + kComplaintPause;
  std::uint64_t silent = std::exchange(silent_complaints_, 0);
  std::string others = silent == 0 ? "" : fmt::format(" ({} more since the last of these lines)", silent);
  logger_.Error("Exception handling job: {}{}", fault, others);
}

void JobEvents::DropOld() {
  SteadyTime oldest = context_.loop.SteadyNow() - kMemory;
  while (!heard_.empty() && heard_.front().when < oldest) heard_.pop_front();
}

void JobEvents::Receive(std::string_view message) {
  Expected<JobEvent> event = ParseJobMessage(message);
  if (!event) return Complain(event.error().message());
  if (!event->is_failure() || event->node_name.empty()) return;
  DropOld();
  if (heard_.size() >= kMaxHeard) return Complain("too many jobs failed at once; this one is ignored");
  heard_.push_back({std::move(*event), context_.loop.SteadyNow()});
  arrived_.Set();
}

Task<> JobEvents::Lead() {
  logger_.Info("Elected to handle job events");
  while (true) {
    DropOld();
    if (heard_.empty()) {
      arrived_.Reset();
      co_await arrived_.Wait();
      continue;
    }
    co_await DecideOrRemember();
  }
}

// If the election is lost meanwhile, the event stays for the next term.
Task<> JobEvents::DecideOrRemember() {
  Heard heard = std::move(heard_.front());
  heard_.pop_front();
  bool is_over = false;
  ScopeExit keep([&] {
    if (!is_over) heard_.push_front(heard);
  });
  Outcome<JobDecision> decision = co_await Attempt(Decide(heard.event));
  if (FailedWith(decision, Verdict::kLostSession)) decision.error().Rethrow();
  is_over = true;
  if (!decision) Complain(decision.error().message());
}

Task<JobDecision> JobEvents::Decide(JobEvent event) {
  if (!event.is_failure()) co_return Ignored("no job has failed");
  if (event.node_name.empty()) co_return Ignored("it ran on no node");
  for (int i = 0; i < kAttempts; ++i) {
    // The caches show at least this version. Read it before the records: a note is then seen, or what became
    // of it.
    std::int32_t seen_version = context_.caches.jobs.hold_notes_version();
    co_await context_.caches.jobs.CatchUp();
    co_await context_.caches.nodes.CatchUp();
    Plan plan = PlanFor(event);
    const NodeId& node = plan.decision.node;
    NoteResult result = NoteResult::kDone;
    if (plan.note)
      result = co_await context_.store.jobs.AddHoldNote(node, std::move(*plan.note), seen_version);
    if (result == NoteResult::kOutdated) continue;
    if (!node.empty()) {
      log::Logger logger = logger_.About(log::OfNode(node));
      logger.Info("Job {} failed: {}", Excerpt(event.job, kMaxJobName), plan.decision.why);
    }
    co_return std::move(plan.decision);
  }
  throw Error(Verdict::kConflict, "other launchers keep changing the hold notes");
}

std::optional<NodeId> JobEvents::NodeOf(const JobEvent& event) const {
  auto find = [this](const NodeId& id) { return context_.caches.nodes.Find(id); };
  sched::KnownNodes known{[find](const NodeId& id) { return find(id) != nullptr; },
                          [this](const std::string& name) -> const std::set<NodeId>& {
                            return context_.caches.nodes.Named(name);
                          },
                          [find](const NodeId& id) {
                            const store::StoredNode* node = find(id);
                            return node != nullptr && CanBeHeld(node->record);
                          }};
  return ResolveNode(event.node_name, known);
}

JobEvents::Plan JobEvents::PlanFor(const JobEvent& event) const {
  const sched::JobRules::Entry* rule = rules_.Find(event.job);
  if (rule == nullptr || rule->limit == 0)
    return {Ignored("no rule wants nodes of this job held"), std::nullopt};
  std::optional<NodeId> id = NodeOf(event);
  if (!id) return {Ignored("no node, or more than one, is known by this name"), std::nullopt};
  const Node& node = context_.caches.nodes.Find(*id)->record;
  if (node.state == NodeState::kHold) return {{true, *id, "the node is held already"}, std::nullopt};
  if (context_.caches.jobs.FindHoldNote(*id) != nullptr)
    return {{true, *id, "the node is going to be held already"}, std::nullopt};
  if (!CanBeHeld(node)) return {Ignored("the node is not in use", *id), std::nullopt};
  std::size_t held = sched::CountHolds(rule->matcher, context_.caches.nodes.HeldByJob(),
                                       context_.caches.jobs.HoldNotesByJob());
  if (held >= static_cast<std::size_t>(rule->limit)) {
    return {Ignored(fmt::format("enough nodes are held by rule {}: {}", rule->id, held), *id), std::nullopt};
  }
  HoldNote note{event.job, HoldComment(event.job), context_.loop.Now(), {}};
  return {{true, *id, "the node is held as soon as it is given back"}, std::move(note)};
}

// Finds removals that a lost session interrupted.
Task<> JobEvents::Sweep() {
  while (true) {
    for (const auto& [id, note] : context_.caches.jobs.hold_notes()) CheckHoldNote(id);
    co_await context_.loop.SleepFor(context_.intervals.cleanup);
  }
}

// A hold note is removed when its node is held or gone.
void JobEvents::CheckHoldNote(const NodeId& id) {
  if (context_.caches.jobs.FindHoldNote(id) == nullptr || !context_.caches.nodes.synced()) return;
  const store::StoredNode* node = context_.caches.nodes.Find(id);
  if (node != nullptr && node->record.state != NodeState::kHold) return;
  if (!removing_.insert(id).second) return;
  tasks_.Spawn("remove a hold note", log::OfNode(id), RemoveHoldNote(id));
}

// Reads the record itself: the cache may lag, and has no malformed records.
Task<> JobEvents::RemoveHoldNote(NodeId id) {
  ScopeExit done([&] { removing_.erase(id); });
  std::optional<store::StoredNode> node = co_await context_.store.nodes.Read(id);
  if (node && node->record.state != NodeState::kHold) co_return;
  co_await context_.store.jobs.RemoveHoldNote(id);
  if (!node) logger_.About(log::OfNode(id)).Info("The node is gone and cannot be held");
}

}  // namespace nodepool::launcher
