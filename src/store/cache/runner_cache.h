#pragma once

#include <map>
#include <optional>
#include <string>

#include "store/cache/record_cache.h"

namespace nodepool::store {

// Sets of runners, their runs, and the jobs that webhooks have named, in memory.
class RunnerCache : public Cache {
 public:
  RunnerCache(Loop& loop, zk::Client& client) : Cache(loop, client, kSettings) {}
  explicit RunnerCache(CacheGroup& group) : Cache(group, kSettings) {}

  const std::map<RunId, RunnerRun>& runs() const { return runs_.all(); }
  const std::map<RunnerSetKey, RunnerSetRecord>& sets() const { return sets_.all(); }
  // Null: there is none.
  const RunnerSetRecord* FindSet(const RunnerSetKey& key) const { return sets_.Find(key); }
  // How many runs the service has that have a node or wait for one.
  std::size_t CountOf(const std::string& service) const { return active_.EntryOf(service).count; }
  const std::map<HookedJobKey, WorkflowJob>& jobs() const { return jobs_.all(); }
  std::size_t CountJobsOf(const std::string& service) const { return hooked_.EntryOf(service).count; }
  // As of RecordMap.
  Subscription OnJob(RecordMap<WorkflowJob>::Listener listener) const {
    return jobs_.OnChange(std::move(listener));
  }

 private:
  static constexpr Settings kSettings{"runner", paths::kRunners};

  zk::TreeCache::Interest InterestIn(std::string_view path) const override {
    return InterestOf(path, runs_, sets_, jobs_);
  }
  void OnZnode(const std::string& path, const zk::NodeData& node) override {
    Follow(path, node, runs_, sets_, jobs_);
  }
  void OnZnodeGone(const std::string& path) override { Remove(path, runs_, sets_, jobs_); }

  RecordMap<RunnerRun> runs_;
  RecordMap<RunnerSetRecord> sets_;
  RecordMap<WorkflowJob> jobs_;
  RecordIndex<RunnerRun, std::string, RecordCount> active_{
      runs_, [](const RunnerRun& run) {
        return run.state == RunState::kEnding ? std::nullopt : std::optional(run.service);
      }};
  RecordIndex<WorkflowJob, std::string, RecordCount> hooked_{
      jobs_, [](const WorkflowJob& job) { return job.service; }};
};

}  // namespace nodepool::store
