#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/config.h"
#include "runners/github/calls.h"
#include "runners/scale_sets.h"

namespace nodepool::runners::forgejo {

// Reading what Forgejo says about jobs (runners.md 4.1).

// The jobs of an answer, which is a list or null; entries without id and handle, and what is more than 1000,
// are left out. `repository` is theirs where the address is that of one; else they are named by its number.
std::vector<WaitingJob> ReadWaitingJobs(const boost::json::value& answer, const std::string& site,
                                        const std::string& repository);

// What is wrong with a server of this version, "15.0.0+gitea-1.22.0", and what is needed; empty: nothing.
std::string FaultOfVersion(const std::string& version);

// A Forgejo as a service of sets (runners.md 4.1): messages are made of polls of its list of waiting jobs,
// and a runner is made for one of them, by its handle.
class ForgejoService : public PolledSets {
 public:
  // Everything outlives it. The address is that of an organization or of a repository.
  ForgejoService(Loop& loop, Random& random, net::HttpClient& http, metrics::Metrics& metrics,
                 const config::RunnerService& service);

  // Checks that the server is new enough; there are no groups. Error(kInvalid) else.
  Task<std::int64_t> GroupId(std::string name) override;
  Task<std::optional<MessageBatch>> NextBatch(MessageSession& session, std::int64_t last,
                                              std::int64_t capacity) override;
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
  struct Making {
    std::string runner_name;
    SteadyTime since{};
  };
  struct Polls {
    std::map<std::string, Making> ordered;  // the runners that are being made, by the job's handle
    PollPauses pauses{std::chrono::seconds(2), std::chrono::seconds(10)};
    Duration pause{0};  // before the next one
  };

  Task<sched::JobStatistics> Begin(std::int64_t set) override;
  Task<boost::json::value> Get(std::string_view kind, std::string path);
  net::HttpCall Call(std::string method, const std::string& path, std::string body = {}) const;
  Task<std::vector<WaitingJob>> List(std::int64_t set);
  // The oldest job without a runner, whose handle is ours for a while; nullopt: there is none.
  std::optional<WaitingJob> Take(const std::vector<WaitingJob>& jobs, const RunnerOrder& order);
  Task<std::optional<RegisteredRunner>> Read(std::int64_t id, bool& is_busy);

  Loop& loop_;
  std::string site_;        // "https://forge.example.org"
  std::string repository_;  // "owner/name"; empty: of an organization
  std::string scope_;       // path below the API: "/repos/owner/name/actions/runners"
  std::string token_;       // secret
  github::Calls calls_;
  std::map<std::int64_t, Polls> polls_;  // by set
};

}  // namespace nodepool::runners::forgejo
