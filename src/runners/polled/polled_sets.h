#pragma once

#include <map>
#include <string>
#include <vector>

#include "runners/scale_sets.h"

namespace nodepool::runners {

// A job that waits for a runner, as a service lists it. All texts are foreign.
struct WaitingJob {
  RunnerJob job;
  std::string handle = {};  // with which a runner takes this job and no other, where the service has such
  std::vector<std::string> labels;
};

// Whether a set with these labels runs a job with those: it has all of the job's, without regard to case.
bool Fits(const std::vector<std::string>& job_labels, const std::vector<std::string>& set_labels);

// Services that know neither sets nor sessions, but the jobs that wait: the sets are ours alone, and messages
// are made of what has changed in the list of those that fit a set (runners.md 3, 4.1).
class PolledSets : public ScaleSets {
 public:
  Task<std::optional<ScaleSet>> FindSet(std::string name, std::int64_t group) override;
  Task<ScaleSet> MakeSet(ScaleSetOrder order) override;
  Task<ScaleSet> ChangeSet(std::int64_t id, ScaleSetOrder order) override;
  Task<> DeleteSet(std::int64_t id) override;
  Task<MessageSession> OpenSession(std::int64_t set, std::string owner) override;
  Task<> CloseSession(std::int64_t set, std::string session) override;
  // What a batch says is said again by the next one, until it is acknowledged.
  Task<> Acknowledge(MessageSession& session, std::int64_t batch) override;

 protected:
  struct Set {
    ScaleSetOrder order;
    std::map<std::int64_t, RunnerJob> known;      // that the messages have named, by number
    std::map<std::int64_t, RunnerJob> now_known;  // the same with a message that is not acknowledged
    std::int64_t batches = 0;
  };

  // Reads what there is before the first message of a session. Its errors are those of OpenSession.
  virtual Task<sched::JobStatistics> Begin(std::int64_t set) = 0;

  // Error(kNotFound): it is not known yet.
  Set& Require(std::int64_t set);
  // A message about the jobs that wait now, without statistics: `kind` for those that were not known, kGone
  // for those that do not wait any more. A job without a time of assignment gets `now`.
  MessageBatch Compare(Set& set, const std::vector<WaitingJob>& jobs, JobMessage::Kind kind, WallTime now);

 private:
  std::map<std::string, std::int64_t> ids_;  // of sets, by name
  std::map<std::int64_t, Set> sets_;
};

// When a list is asked for next: `shortest` after one that had jobs, growing to `longest` while there are
// none.
class PollPauses {
 public:
  PollPauses(Duration shortest, Duration longest)
      : shortest_(shortest), longest_(longest), pause_(shortest) {}
  Duration Next(bool had_jobs);

 private:
  Duration shortest_;
  Duration longest_;
  Duration pause_;
};

}  // namespace nodepool::runners
