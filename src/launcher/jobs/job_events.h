#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "async/task_group.h"
#include "base/subscription.h"
#include "launcher/context.h"
#include "model/job.h"
#include "sched/jobs/job_rules.h"

namespace nodepool::launcher {

// What was decided about a failed job.
struct JobDecision {
  bool is_kept = false;  // its node is held, or will be
  NodeId node;           // empty: the job has no node
  std::string why;       // for operators, a sentence without its full stop
};

// Holds nodes on which jobs failed, according to the rules (operations.md 13.5 to 13.7, D-67).
// A node that is to be held gets a hold note in ZooKeeper; when its consumer returns it, DeletedNodeWorker
// holds it instead of deleting it. The note is removed when the node is held or gone.
//
// Every launcher listens to the publishers; the elected one decides. The others remember events for a minute,
// in case they are elected. Deciding twice does no harm: a node has one note, and each decision takes all
// earlier notes into account.
class JobEvents {
 public:
  explicit JobEvents(Context& context);
  ~JobEvents();  // call Stop() first

  // The caches are complete.
  void Start();
  // Listens to the publishers of the configuration in force.
  void Reconfigure();
  Task<> Stop();

  // Handles a message of a publisher. Unreadable messages are logged, at a limited rate.
  void Receive(std::string_view message);

  // Decides whether the job's node is held, in any launcher, elected or not; waits until the caches are
  // complete and while ZooKeeper is away. Errors are those of ZooKeeper.
  Task<JobDecision> Decide(JobEvent event);

 private:
  struct Heard {
    JobEvent event;
    SteadyTime when;
  };
  // What to do about a failed job, according to the caches.
  struct Plan {
    JobDecision decision;
    std::optional<HoldNote> note;
  };

  TaskGroup::TaskId Listen(const std::string& endpoint);
  Task<> Lead();
  Task<> DecideOrRemember();
  Task<> Sweep();
  Task<> RemoveHoldNote(NodeId node);
  void DropOld();
  void Complain(const std::string& fault);
  std::optional<NodeId> NodeOf(const JobEvent& event) const;
  Plan PlanFor(const JobEvent& event) const;
  void SetRule(const JobId& id, const store::StoredJobRule* rule);
  void CheckHoldNote(const NodeId& node);

  Context& context_;
  log::Logger logger_;
  sched::JobRules rules_;
  std::deque<Heard> heard_;  // oldest first
  Event arrived_{"an event of a job"};
  SteadyTime next_complaint_{};
  std::uint64_t silent_complaints_ = 0;
  std::set<NodeId> removing_;
  TaskGroup tasks_;
  std::map<std::string, TaskGroup::TaskId> listening_;  // by endpoint
  std::optional<TaskGroup::TaskId> competing_;          // while there are publishers
  std::vector<Subscription> subscriptions_;
};

}  // namespace nodepool::launcher
