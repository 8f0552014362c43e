#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "base/subscription.h"
#include "runners/github/jobs.h"
#include "runners/scale_sets.h"
#include "store/cache/caches.h"

namespace nodepool::runners::github {

// GitHub without scale sets (runners.md 3): jobs are learnt of by webhooks, whose deliveries are records, and
// by lists of the REST API, with which runners are registered, too. A job is announced, and is ours once it
// was acquired, which is refused for runs of forks.
class RestService : public PolledSets {
 public:
  // Everything outlives it. Error(kInvalid): the service's address cannot be used.
  RestService(Loop& loop, Random& random, net::HttpClient& http, metrics::Metrics& metrics,
              const config::RunnerService& service, const store::RunnerCache& records);

  Task<std::int64_t> GroupId(std::string name) override;
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
  Task<std::string> NewestVersion() override;
  Task<std::vector<RegisteredRunner>> ListRunners() override;

 private:
  // How far a set's messages are.
  struct Told {
    std::uint64_t version = 0;      // of the jobs, acknowledged
    std::uint64_t now_version = 0;  // of the message that is not
    std::set<std::int64_t> acquired;
  };

  Task<sched::JobStatistics> Begin(std::int64_t set) override;
  void TakeDelivery(const WorkflowJob& job);
  bool is_list_due() const { return loop_.SteadyNow() >= next_list_; }
  Task<> ListWhenDue();
  Task<std::vector<std::string>> ToList();
  Task<> List(std::string repository);
  Duration PauseAfterList(std::int64_t calls);
  MessageBatch Message(std::int64_t set);
  void AddRunnersOfSet(std::int64_t set, MessageBatch& batch);
  Task<bool> MayRun(std::int64_t request);
  Task<std::vector<RegisteredRunner>> Runners(std::string query);

  Loop& loop_;
  config::RunnerService settings_;
  Scope scope_;
  Calls calls_;
  Login login_;
  Repositories repositories_;
  JobLists lists_;
  WorkflowJobs jobs_;
  std::map<std::int64_t, Told> told_;  // by set
  SteadyTime next_list_{};
  std::optional<WallTime> listed_;  // when the last list was asked for; nullopt: there was none
  PollPauses pauses_{std::chrono::seconds(5), std::chrono::seconds(30)};
  std::string last_fork_;     // whose job was left alone last
  std::string last_missing_;  // a repository that cannot be listed
  Gate listing_{1};
  Gate registrations_{kMostRegistrations};
  WaitList changed_;
  Subscription deliveries_;
};

}  // namespace nodepool::runners::github
