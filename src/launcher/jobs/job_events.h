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
#include "model/job_event.h"
#include "sched/jobs/job_rules.h"

namespace nodepool::launcher {

// What became of a job's end.
struct JobDecision {
  bool is_kept = false;  // its node is held, or will be
  NodeId node;           // which; empty when none is meant
  std::string why;       // for a person, a sentence without its full stop
};

// Holds nodes on which jobs failed, as the rules want it (operations.md 13.5 to 13.7, D-67).
// A node that is to be held is noted in ZooKeeper; who would delete it, when its consumer has
// given it back, holds it instead (DeletedNodeWorker). The note goes when the node is held or
// gone.
//
// Every launcher hears the publishers, the elected one decides. The others remember what they
// heard for a minute, in case that they are elected. To decide twice does no harm: there is
// one note for a node, and each rests on all that were written before.
class JobEvents {
 public:
  JobEvents(Context& context, std::string hostname);
  ~JobEvents();  // call Stop() first

  // The caches are complete.
  void Start();
  // Listens to the publishers of the configuration in force.
  void Reconfigure();
  Task<> Stop();

  // A message of a publisher. One that cannot be read is reported, though not each of many.
  void Receive(std::string_view message);

  // Decides what becomes of the node, in whatever launcher, from now on or as soon as the caches
  // are complete. Errors are those of ZooKeeper; waits while that is away.
  Task<JobDecision> Decide(JobEvent event);

 private:
  struct Heard {
    JobEvent event;
    SteadyTime when;
  };
  // What is to be done about a failed job, by what the caches show.
  struct Plan {
    JobDecision decision;
    std::optional<HoldWish> wish;
  };

  TaskGroup::TaskId Listen(const std::string& endpoint);
  Task<> Compete();
  Task<> Lead();
  Task<> DecideOrKeep(Heard heard);
  Task<> Sweep();
  Task<> RemoveWish(NodeId node);
  void ForgetOld();
  void Complain(const std::string& fault);
  std::optional<NodeId> NodeOf(const JobEvent& event) const;
  Plan PlanFor(const JobEvent& event) const;
  void SetRule(const JobId& id, const store::StoredJobRule* rule);
  void CheckWish(const NodeId& node);

  Context& context_;
  std::string hostname_;
  log::Logger logger_;
  sched::JobRules rules_;
  std::deque<Heard> heard_;  // the oldest first
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
