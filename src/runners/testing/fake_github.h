#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "runners/scale_sets.h"

namespace nodepool::runners::testing {

// GitHub's scale sets in memory, in virtual time: jobs, sets, sessions, registrations. A runner of a set
// takes any job that is assigned to the set.
class FakeGithub {
 public:
  struct Job {
    enum class State { kQueued, kAnnounced, kAcquired, kAssigned, kRunning, kDone };
    std::int64_t request = 0;
    std::string repository;
    std::string set;
    State state = State::kQueued;
    std::string result;
    std::int64_t runner = 0;
    int times_started = 0;
    Duration length{0};
    WallTime queued{};
    std::optional<WallTime> assigned;
  };
  struct Runner {
    std::string name;
    std::int64_t set = 0;
    bool is_online = false;
    std::int64_t job = 0;
  };

  explicit FakeGithub(Loop& loop) : loop_(loop) {}

  // --- The world -------------------------------------------------------------
  std::int64_t Queue(Duration length = std::chrono::seconds(5), std::string repository = "octo/app",
                     std::string set = "small");
  void Cancel(std::int64_t request);
  const Job& job(std::int64_t request) const { return jobs_.at(request); }
  const std::map<std::int64_t, Job>& jobs() const { return jobs_; }
  const std::map<std::int64_t, Runner>& runners() const { return runners_; }
  std::size_t CountJobs(Job::State state) const;
  bool AllDone() const { return CountJobs(Job::State::kDone) == jobs_.size(); }
  bool HasSession(std::int64_t set) const { return sets_.contains(set) && !sets_.at(set).session.empty(); }
  std::size_t set_count() const { return sets_.size(); }
  std::vector<std::string> LabelsOf(std::int64_t set) const { return sets_.at(set).labels; }
  std::int64_t CapacityOf(std::int64_t set) const { return sets_.at(set).capacity; }
  // Another one has the session of the set.
  void Occupy(std::int64_t set, std::string owner);
  void Release(std::int64_t set);
  void AddRunner(std::string name, bool is_online);
  void RemoveRegistration(const std::string& name);
  bool HasRunnerNamed(const std::string& name) const;

  // --- For the runner on its node --------------------------------------------
  // False: its registration is gone.
  bool GoOnline(std::int64_t runner);
  // The job of the runner; 0: none yet; nullopt: its registration is gone.
  std::optional<std::int64_t> JobOf(std::int64_t runner);
  void Finish(std::int64_t runner, std::string result);

  // --- Settings --------------------------------------------------------------
  bool is_direct = false;     // jobs are assigned without being acquired
  std::int64_t phantoms = 0;  // jobs that the figures count, and that are none
  bool has_figures = true;    // else all statistics are 0
  Duration poll = std::chrono::seconds(50);
  bool drops_labels = false;
  std::set<std::string> public_repositories;
  std::string newest_version;

  // --- Calls, as of ScaleSets ------------------------------------------------
  std::optional<ScaleSet> FindSet(const std::string& name) const;
  ScaleSet MakeSet(const ScaleSetOrder& order);
  ScaleSet ChangeSet(std::int64_t id, const ScaleSetOrder& order);
  void DeleteSet(std::int64_t id);
  MessageSession OpenSession(std::int64_t set, std::string owner);
  void CloseSession(std::int64_t set, const std::string& session);
  Task<std::optional<MessageBatch>> NextBatch(MessageSession session, std::int64_t last,
                                              std::int64_t capacity);
  void Acknowledge(const MessageSession& session, std::int64_t batch);
  std::vector<std::int64_t> Acquire(const MessageSession& session, const std::vector<std::int64_t>& requests);
  Registration Register(std::int64_t set, const std::string& name);
  std::optional<RegisteredRunner> FindRunner(const std::string& name) const;
  bool HasRunner(std::int64_t id) const { return runners_.contains(id); }
  Removal RemoveRunner(std::int64_t id);
  std::vector<RegisteredRunner> ListRunners() const;

 private:
  struct Set {
    std::string name;
    std::vector<std::string> labels;
    std::string session;
    std::string owner;
    std::int64_t capacity = 0;
    std::deque<JobMessage> events;
    std::map<std::int64_t, std::vector<JobMessage>> batches;  // not acknowledged
  };

  void Advance();
  void AdvanceJob(Job& job);
  void Tell(Job& job, JobMessage::Kind kind);
  Set* SetNamed(const std::string& name);
  Set& Require(std::int64_t set);
  void RequireSession(const MessageSession& session);
  sched::JobStatistics Statistics(const Set& set) const;

  Loop& loop_;
  std::map<std::int64_t, Job> jobs_;
  std::map<std::int64_t, Set> sets_;
  std::map<std::int64_t, Runner> runners_;
  std::int64_t last_id_ = 0;
  WaitList changed_;
};

// A daemon's connection to it. `before` is called with the name of each call, and again after it was carried
// out; it may throw, so that the call is not carried out, or that its answer is lost.
class FakeConnection : public ScaleSets {
 public:
  enum class Moment { kBefore, kAfter };
  using Check = std::function<void(const std::string& call, Moment moment)>;

  FakeConnection(Loop& loop, FakeGithub& github, Check check)
      : loop_(loop), github_(github), check_(std::move(check)) {}

  Task<std::int64_t> GroupId(std::string name) override;
  Task<std::optional<ScaleSet>> FindSet(std::string name, std::int64_t group) override;
  Task<ScaleSet> MakeSet(ScaleSetOrder order) override;
  Task<ScaleSet> ChangeSet(std::int64_t id, ScaleSetOrder order) override;
  Task<> DeleteSet(std::int64_t id) override;
  Task<MessageSession> OpenSession(std::int64_t set, std::string owner) override;
  Task<> CloseSession(std::int64_t set, std::string session) override;
  Task<std::optional<MessageBatch>> NextBatch(MessageSession& session, std::int64_t last,
                                              std::int64_t capacity) override;
  Task<> Acknowledge(MessageSession& session, std::int64_t batch) override;
  Task<std::vector<std::int64_t>> Acquire(MessageSession& session,
                                          std::vector<std::int64_t> requests) override;
  Task<Registration> Register(RunnerOrder order) override;
  Task<std::optional<RegisteredRunner>> FindRunner(std::string name) override;
  Task<bool> HasRunner(std::int64_t id) override;
  Task<Removal> RemoveRunner(std::int64_t id) override;
  Task<bool> IsPublic(std::string repository) override;
  Task<std::string> NewestVersion() override { co_return github_.newest_version; }
  Task<std::vector<RegisteredRunner>> ListRunners() override;

  std::map<std::string, int> calls;

 private:
  template <class F>
  auto Call(std::string name, F work) -> Task<std::invoke_result_t<F>>;

  Loop& loop_;
  FakeGithub& github_;
  Check check_;
};

}  // namespace nodepool::runners::testing
