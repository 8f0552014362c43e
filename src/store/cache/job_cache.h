#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

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

}  // namespace nodepool::store
