#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/subscription.h"
#include "store/cache/listeners.h"
#include "store/malformed.h"
#include "store/records.h"
#include "zk/recipes/tree_cache.h"

namespace nodepool::store {

// The rules about jobs, and the nodes that are to be held by them, in memory. Malformed
// records are reported once per version, counted, and not listed (D-08).
class JobCache : private zk::TreeCache::Listener {
 public:
  // `after` is null for one that vanished or cannot be read; valid during the call.
  using RuleListener = std::function<void(const JobId&, const StoredJobRule* after)>;
  using WishListener = std::function<void(const NodeId&, const StoredHoldWish* after)>;

  JobCache(Loop& loop, zk::Client& client);
  ~JobCache() override;

  void Start() { tree_.Start(); }
  Task<> Stop() { return tree_.Stop(); }
  Task<> WaitSynced() { return tree_.WaitSynced(); }
  bool synced() const { return tree_.synced(); }
  // Ends when everything shows that anybody had written before this was called.
  Task<> CatchUp() { return tree_.CatchUp(); }

  Subscription OnRule(RuleListener listener) { return rule_listeners_.Add(std::move(listener)); }
  Subscription OnWish(WishListener listener) { return wish_listeners_.Add(std::move(listener)); }

  const std::map<JobId, StoredJobRule>& rules() const { return rules_; }
  const std::map<NodeId, StoredHoldWish>& wishes() const { return wishes_; }
  const StoredHoldWish* FindWish(const NodeId& node) const;
  const std::map<std::string, std::set<NodeId>>& WishesByJob() const { return wishes_by_job_; }
  // Grows with each wish; -1 before the first one of all.
  std::int32_t wishes_version() const { return wishes_version_; }

  std::uint64_t malformed_count() const { return malformed_.count(); }

 private:
  bool WantsData(std::string_view path) const override;
  void OnNode(const std::string& path, const zk::NodeData& node) override;
  void OnGone(const std::string& path) override;
  void OnSynced() override {}

  void ReplaceRule(const JobId& id, std::optional<StoredJobRule> after);
  void ReplaceWish(const NodeId& id, std::optional<StoredHoldWish> after);

  std::map<JobId, StoredJobRule> rules_;
  std::map<NodeId, StoredHoldWish> wishes_;
  std::map<std::string, std::set<NodeId>> wishes_by_job_;
  std::int32_t wishes_version_ = -1;
  MalformedRecords malformed_;
  Listeners<const JobId&, const StoredJobRule*> rule_listeners_;
  Listeners<const NodeId&, const StoredHoldWish*> wish_listeners_;
  zk::TreeCache tree_;
};

}  // namespace nodepool::store
