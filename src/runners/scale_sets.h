#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/clock.h"
#include "model/runner.h"
#include "sched/runners/run_step.h"

namespace nodepool::runners {

// What GitHub's runner scale sets offer (runners.md 2), and other services as if they had them.
// Implementations: github::ActionsService, forgejo::ForgejoService; a fake in tests.

struct ScaleSet {
  std::int64_t id = 0;
  std::vector<std::string> labels;
  bool has_updates_disabled = false;
};

// A set as it shall be.
struct ScaleSetOrder {
  std::string name;
  std::int64_t group = 1;
  std::vector<std::string> labels;
};

// Our right to the messages of a set. Only one session of a set exists at a time.
struct MessageSession {
  std::int64_t set = 0;
  std::string id;
  std::string owner;
  std::string queue_url;
  std::string queue_token;  // secret
  sched::JobStatistics statistics;
};

// A message about one job. All texts are the service's, and may be hostile.
struct JobMessage {
  // kGone: it waits no longer, since it has a runner or was cancelled.
  enum class Kind { kAvailable, kAssigned, kStarted, kCompleted, kGone, kOther };
  Kind kind = Kind::kOther;
  RunnerJob job;
  std::string runner_name;  // of kStarted and kCompleted
  std::string result;       // of kCompleted: "succeeded", "failed", "canceled" ...
};

struct MessageBatch {
  std::int64_t id = 0;
  std::vector<JobMessage> jobs;
  std::optional<sched::JobStatistics> statistics;
  std::optional<WallTime> as_of = std::nullopt;  // of the statistics; nullopt: of now
};

// A runner to be made for one job of the set.
struct RunnerOrder {
  std::int64_t set = 0;
  std::string name;
  std::set<std::string> taken;  // handles of the jobs for which there are runners
};

struct Registration {
  std::int64_t id = 0;        // 0: no job waits that has no runner yet, so none was made
  std::string configuration;  // secret; one line
  std::string handle;         // of the job that it is for, where the service decides so early; else empty
  RunnerJob job;              // that job
};

struct RegisteredRunner {
  std::int64_t id = 0;
  std::string name;
  bool is_offline = false;
};

enum class Removal { kRemoved, kGone, kBusy };

// Errors of all calls: github::ServiceError for a refusal; net::HttpError when there is no answer;
// Error(kRetry) for an answer without meaning. All end in a bounded time.
class ScaleSets {
 public:
  virtual ~ScaleSets() = default;

  // Error(kInvalid), which names it, when there is no such group.
  virtual Task<std::int64_t> GroupId(std::string name) = 0;
  virtual Task<std::optional<ScaleSet>> FindSet(std::string name, std::int64_t group) = 0;
  virtual Task<ScaleSet> MakeSet(ScaleSetOrder order) = 0;
  virtual Task<ScaleSet> ChangeSet(std::int64_t id, ScaleSetOrder order) = 0;
  // A missing set or session counts as deleted.
  virtual Task<> DeleteSet(std::int64_t id) = 0;

  // kConflict: the set has a session already; the message says whose.
  virtual Task<MessageSession> OpenSession(std::int64_t set, std::string owner) = 0;
  virtual Task<> CloseSession(std::int64_t set, std::string session) = 0;
  // Waits for about 50 s; nullopt: there is nothing. Renews the session's token where it has ended.
  virtual Task<std::optional<MessageBatch>> NextBatch(MessageSession& session, std::int64_t last,
                                                      std::int64_t capacity) = 0;
  virtual Task<> Acknowledge(MessageSession& session, std::int64_t batch) = 0;
  // Returns those that we have now.
  virtual Task<std::vector<std::int64_t>> Acquire(MessageSession& session,
                                                  std::vector<std::int64_t> requests) = 0;

  // kConflict: the name is taken.
  virtual Task<Registration> Register(RunnerOrder order) = 0;
  virtual Task<std::optional<RegisteredRunner>> FindRunner(std::string name) = 0;
  // Whether the service knows the runner.
  virtual Task<bool> HasRunner(std::int64_t id) = 0;
  virtual Task<Removal> RemoveRunner(std::int64_t id) = 0;
  // Whether everybody may read the repository, "owner/name".
  virtual Task<bool> IsPublic(std::string repository) = 0;
  // The newest version of the runner that the service offers, "2.330.0"; empty: it does not say.
  virtual Task<std::string> NewestVersion() = 0;
  // All runners, ours and others'.
  virtual Task<std::vector<RegisteredRunner>> ListRunners() = 0;
};

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
