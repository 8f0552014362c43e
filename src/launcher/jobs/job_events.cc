#include "launcher/jobs/job_events.h"

#include <fmt/format.h>
#include <unistd.h>

#include "async/attempt.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "net/zmq_subscriber.h"

namespace nodepool::launcher {
namespace {

using store::Wished;

constexpr Duration kMemory = std::chrono::seconds(60);
constexpr std::size_t kMostHeard = 1000;
constexpr Duration kComplaintPause = std::chrono::seconds(60);
constexpr int kAttempts = 10;  // while others write wishes

JobDecision Ignored(std::string why, NodeId node = {}) { return {false, std::move(node), std::move(why)}; }

}  // namespace

JobEvents::JobEvents(Context& context, std::string hostname)
    : context_(context),
      hostname_(std::move(hostname)),
      logger_("nodepool.NodeUpdateListener"),
      tasks_(context.loop, logger_) {
  subscriptions_.push_back(
      context_.jobs.OnRule([this](const JobId& id, const store::StoredJobRule* rule) { SetRule(id, rule); }));
  subscriptions_.push_back(
      context_.jobs.OnWish([this](const NodeId& id, const store::StoredHoldWish*) { CheckWish(id); }));
  subscriptions_.push_back(context_.nodes.OnChange(
      [this](const NodeId& id, const store::StoredNode*, const store::StoredNode*) { CheckWish(id); }));
}

JobEvents::~JobEvents() = default;

void JobEvents::Start() {
  tasks_.Spawn("sweep wishes to hold", Sweep());
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
    competing_ = tasks_.Spawn("stand for the handling of job events", Compete());
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

void JobEvents::ForgetOld() {
  SteadyTime oldest = context_.loop.SteadyNow() - kMemory;
  while (!heard_.empty() && heard_.front().when < oldest) heard_.pop_front();
}

void JobEvents::Receive(std::string_view message) {
  Expected<JobEvent> event = ParseJobMessage(message);
  if (!event) return Complain(event.error().message());
  if (!event->is_failure() || event->node_name.empty()) return;
  ForgetOld();
  if (heard_.size() >= kMostHeard) return Complain("too many jobs failed at once; this one is passed over");
  heard_.push_back({std::move(*event), context_.loop.SteadyNow()});
  arrived_.Set();
}

Task<> JobEvents::Compete() {
  zk::Election election = context_.store.jobs.Election(fmt::format("{}-{}", hostname_, getpid()));
  co_await election.RunForEver([this] { return Lead(); }, "Handling job events", logger_);
}

Task<> JobEvents::Lead() {
  logger_.Info("Elected to handle job events");
  while (true) {
    ForgetOld();
    if (heard_.empty()) {
      arrived_.Reset();
      co_await arrived_.Wait();
      continue;
    }
    Heard next = std::move(heard_.front());
    heard_.pop_front();
    co_await DecideOrKeep(std::move(next));
  }
}

// Deposed meanwhile, it is left for the next term.
Task<> JobEvents::DecideOrKeep(Heard heard) {
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
    // The caches show at least this version, and in this order each wish or what became of it.
    std::int32_t seen_version = context_.jobs.wishes_version();
    co_await context_.jobs.CatchUp();
    co_await context_.nodes.CatchUp();
    Plan plan = PlanFor(event);
    const NodeId& node = plan.decision.node;
    Wished wished = Wished::kDone;
    if (plan.wish)
      wished = co_await context_.store.jobs.AddHoldWish(node, std::move(*plan.wish), seen_version);
    if (wished == Wished::kOutdated) continue;
    if (!node.empty()) {
      log::Logger logger = logger_.About({"", "", node.value});
      logger.Info("Job {} failed: {}", Excerpt(event.job, kMaxJobName), plan.decision.why);
    }
    co_return std::move(plan.decision);
  }
  throw Error(Verdict::kConflict, "others keep changing which nodes are to be held");
}

std::optional<NodeId> JobEvents::NodeOf(const JobEvent& event) const {
  auto find = [this](const NodeId& id) { return context_.nodes.Find(id); };
  sched::KnownNodes known{
      [find](const NodeId& id) { return find(id) != nullptr; },
      [this](const std::string& name) -> const std::set<NodeId>& { return context_.nodes.Named(name); },
      [find](const NodeId& id) {
        const store::StoredNode* node = find(id);
        return node != nullptr && CanBeHeld(node->record);
      }};
  return FindNodeMeant(event.node_name, known);
}

JobEvents::Plan JobEvents::PlanFor(const JobEvent& event) const {
  const sched::JobRules::Entry* rule = rules_.Find(event.job);
  if (rule == nullptr || rule->limit == 0)
    return {Ignored("no rule wants nodes of this job held"), std::nullopt};
  std::optional<NodeId> id = NodeOf(event);
  if (!id) return {Ignored("no node, or more than one, is known by this name"), std::nullopt};
  const Node& node = context_.nodes.Find(*id)->record;
  if (node.state == NodeState::kHold) return {{true, *id, "the node is held already"}, std::nullopt};
  if (context_.jobs.FindWish(*id) != nullptr)
    return {{true, *id, "the node is going to be held already"}, std::nullopt};
  if (!CanBeHeld(node)) return {Ignored("nobody uses the node", *id), std::nullopt};
  std::size_t held =
      sched::CountHolds(rule->matcher, context_.nodes.HeldByJob(), context_.jobs.WishesByJob());
  if (held >= static_cast<std::size_t>(rule->limit)) {
    return {Ignored(fmt::format("enough nodes are held by rule {}: {}", rule->id, held), *id), std::nullopt};
  }
  HoldWish wish{event.job, HoldComment(event.job), context_.loop.Now(), {}};
  return {{true, *id, "the node is held as soon as it is given back"}, std::move(wish)};
}

// The net for removals that a lost session interrupted.
Task<> JobEvents::Sweep() {
  while (true) {
    for (const auto& [id, wish] : context_.jobs.wishes()) CheckWish(id);
    co_await context_.loop.SleepFor(context_.intervals.cleanup);
  }
}

// A wish ends with its fulfilment or with its node.
void JobEvents::CheckWish(const NodeId& id) {
  if (context_.jobs.FindWish(id) == nullptr || !context_.nodes.synced()) return;
  const store::StoredNode* node = context_.nodes.Find(id);
  if (node != nullptr && node->record.state != NodeState::kHold) return;
  if (!removing_.insert(id).second) return;
  tasks_.Spawn("remove a wish to hold", {"", "", id.value}, RemoveWish(id));
}

// Looks at the record itself: the cache may be behind, and knows nothing of malformed ones.
Task<> JobEvents::RemoveWish(NodeId id) {
  ScopeExit done([&] { removing_.erase(id); });
  std::optional<store::StoredNode> node = co_await context_.store.nodes.Read(id);
  if (node && node->record.state != NodeState::kHold) co_return;
  co_await context_.store.jobs.RemoveHoldWish(id);
  if (!node) logger_.About({"", "", id.value}).Info("The node is gone; it cannot be held any more");
}

}  // namespace nodepool::launcher
