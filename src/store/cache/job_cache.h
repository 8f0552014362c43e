#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/listeners.h"
#include "base/subscription.h"
#include "store/malformed.h"
#include "store/records.h"
#include "zk/recipes/tree_cache.h"

namespace nodepool::store {

// The rules about jobs and the hold notes, in memory. Malformed records are reported once per
// version, counted, and not listed (D-08).
class JobCache : private zk::TreeCache::Listener {
 public:
  // `after` is null for a rule that vanished or cannot be read; valid during the call.
  using RuleListener = std::function<void(const JobId&, const StoredJobRule* after)>;
  using HoldNoteListener = std::function<void(const NodeId&, const StoredHoldNote* after)>;

  JobCache(Loop& loop, zk::Client& client);
  ~JobCache() override;

  void Start() { tree_.Start(); }
  Task<> Stop() { return tree_.Stop(); }
  Task<> WaitSynced() { return tree_.WaitSynced(); }
  bool synced() const { return tree_.synced(); }
  // Ends when the cache shows everything that any client wrote before this was called.
  Task<> CatchUp() { return tree_.CatchUp(); }

  Subscription OnRule(RuleListener listener) const { return rule_listeners_.Add(std::move(listener)); }
  Subscription OnHoldNote(HoldNoteListener listener) const {
    return hold_note_listeners_.Add(std::move(listener));
  }

  const std::map<JobId, StoredJobRule>& rules() const { return rules_; }
  const std::map<NodeId, StoredHoldNote>& hold_notes() const { return hold_notes_; }
  const StoredHoldNote* FindHoldNote(const NodeId& node) const;
  const std::map<std::string, std::set<NodeId>>& HoldNotesByJob() const { return hold_notes_by_job_; }
  // Grows with each hold note; -1 before the very first one.
  std::int32_t hold_notes_version() const { return hold_notes_version_; }

  std::uint64_t malformed_count() const { return malformed_.count(); }

 private:
  zk::TreeCache::Interest InterestIn(std::string_view path) const override;
  void OnNode(const std::string& path, const zk::NodeData& node) override;
  void OnGone(const std::string& path) override;
  void OnSynced() override {}

  void ReplaceRule(const JobId& id, std::optional<StoredJobRule> after);
  void ReplaceHoldNote(const NodeId& id, std::optional<StoredHoldNote> after);

  std::map<JobId, StoredJobRule> rules_;
  std::map<NodeId, StoredHoldNote> hold_notes_;
  std::map<std::string, std::set<NodeId>> hold_notes_by_job_;
  std::int32_t hold_notes_version_ = -1;
  MalformedRecords malformed_;
  Listeners<const JobId&, const StoredJobRule*> rule_listeners_;
  Listeners<const NodeId&, const StoredHoldNote*> hold_note_listeners_;
  zk::TreeCache tree_;
};

}  // namespace nodepool::store
