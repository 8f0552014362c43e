#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/reconciler.h"
#include "async/task_group.h"
#include "store/cache/cached_records.h"
#include "store/cache/record_cache.h"

namespace nodepool::store {

// The rules about jobs and the hold notes, in memory.
class JobCache : public Cache {
 public:
  using RuleListener = RecordMap<StoredJobRule>::Listener;
  using HoldNoteListener = RecordMap<StoredHoldNote>::Listener;

  JobCache(Loop& loop, zk::Client& client) : Cache(loop, client, kSettings) {}
  explicit JobCache(CacheGroup& group) : Cache(group, kSettings) {}

  Subscription OnRule(RuleListener listener) const { return rules_.OnChange(std::move(listener)); }
  Subscription OnHoldNote(HoldNoteListener listener) const {
    return hold_notes_.OnChange(std::move(listener));
  }

  const std::map<JobId, StoredJobRule>& rules() const { return rules_.all(); }
  const std::map<NodeId, StoredHoldNote>& hold_notes() const { return hold_notes_.all(); }
  const StoredHoldNote* FindHoldNote(const NodeId& node) const { return hold_notes_.Find(node); }
  const std::map<std::string, std::set<NodeId>>& HoldNotesByJob() const { return notes_by_job_.entries(); }
  // Grows with each hold note; -1 before the very first one.
  std::int32_t hold_notes_version() const { return hold_notes_version_; }

 private:
  static constexpr Settings kSettings{"job", paths::kJobs};

  zk::TreeCache::Interest InterestIn(std::string_view path) const override {
    return path == paths::kHoldNotes ? zk::TreeCache::Interest::kData : InterestOf(path, rules_, hold_notes_);
  }
  void OnZnode(const std::string& path, const zk::NodeData& node) override {
    if (path == paths::kHoldNotes) hold_notes_version_ = node.stat.version;
    Follow(path, node, rules_, hold_notes_);
  }
  void OnZnodeGone(const std::string& path) override {
    if (path == paths::kHoldNotes) hold_notes_version_ = -1;
    Remove(path, rules_, hold_notes_);
  }

  RecordMap<StoredJobRule> rules_;
  RecordMap<StoredHoldNote> hold_notes_;
  RecordIndex<StoredHoldNote, std::string> notes_by_job_{
      hold_notes_, [](const StoredHoldNote& note) -> const auto& { return note.record.hold_job; }};
  std::int32_t hold_notes_version_ = -1;
};

// Every lease, in memory.
class LeaseCache : public RecordCache<StoredLease> {
 public:
  using RecordCache::RecordCache;

  const std::set<LeaseId>& OfClient(const std::string& client) const {
    return by_client_.EntryOf(client).leases;
  }
  // How many nodes the client's leases have or wait for.
  std::size_t NodeCountOf(const std::string& client) const { return by_client_.EntryOf(client).nodes; }
  // The lease that waits for the request; null: none.
  const StoredLease* WaitingFor(const RequestId& request) const {
    return FirstOf(by_request_.EntryOf(request));
  }
  // The lease that has the node; null: none.
  const StoredLease* Holding(const NodeId& node) const { return FirstOf(by_node_.EntryOf(node)); }

 private:
  struct OfOneClient {
    std::set<LeaseId> leases;
    std::size_t nodes = 0;
    void Add(const StoredLease& lease) {
      leases.insert(lease.id);
      nodes += lease.record.node_count();
    }
    void Remove(const StoredLease& lease) {
      leases.erase(lease.id);
      nodes -= lease.record.node_count();
    }
    bool empty() const { return leases.empty(); }
  };
  // One, but for leases that were written by hand.
  using FewLeases = boost::container::flat_set<LeaseId>;

  const StoredLease* FirstOf(const FewLeases& leases) const {
    return leases.empty() ? nullptr : Find(*leases.begin());
  }

  RecordIndex<StoredLease, std::string, OfOneClient> by_client_{
      records_, [](const StoredLease& lease) -> const auto& { return lease.record.client; }};
  RecordIndex<StoredLease, RequestId, FewLeases> by_request_{
      records_, [](const StoredLease& lease) {
        const RequestId& request = lease.record.request;
        return request.empty() ? std::nullopt : std::optional(request);
      }};
  RecordIndex<StoredLease, NodeId, FewLeases> by_node_{
      records_, [](const StoredLease& lease) -> const auto& { return lease.record.nodes; }};
};

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

// Caches that are waited for and stopped together.
class CacheGroup {
 public:
  static constexpr const char* kNotComplete = "The records are not read yet, or ZooKeeper is away.";

  // Both outlive it.
  CacheGroup(Loop& loop, zk::Client& client);

  // A program starts those that it needs, in this order; the others stay empty.
  const std::vector<Cache*>& all() const { return all_; }

  // Whether all that were started are complete; false before, and while ZooKeeper is away.
  bool synced() const;
  // Throws Error(kRetry) unless they are.
  void RequireSynced() const;
  Task<> WaitSynced();
  // The same as synced(), after the start; if they are not, wakes `loop` as soon as they are. `loop` lives
  // until Stop() has ended.
  bool SyncedOrWake(WakeLoop& loop);
  Task<> Stop();

 private:
  friend class Cache;  // adds itself

  bool IsAnyIncomplete() const;
  Task<> WakeWhenSynced();

  Loop& loop_;
  zk::Client& client_;
  std::vector<Cache*> all_;
  std::set<WakeLoop*> to_wake_;
  TaskGroup tasks_;
};

// The caches of all kinds of records.
struct Caches : CacheGroup {
  using CacheGroup::CacheGroup;

  ComponentRegistry components{*this};
  NodeCache nodes{*this};
  RequestCache requests{*this};
  RequestLockCache request_locks{*this};
  ImageCache images{*this};
  JobCache jobs{*this};
  LeaseCache leases{*this};
  RecordCache<ProviderPause> pauses{*this};  // one that cannot be read pauses, too
  RecordCache<Breaker> breakers{*this};      // one that cannot be read counts as closed
  RunnerCache runners{*this};
};

}  // namespace nodepool::store
