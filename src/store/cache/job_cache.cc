#include "store/cache/job_cache.h"

#include "store/decode.h"

namespace nodepool::store {
namespace {

template <class Stored, class Id>
std::optional<Stored> DecodeOrReport(const Id& id, const std::string& path, const zk::NodeData& node,
                                     MalformedRecords& malformed) {
  try {
    Stored stored = Decode<Stored>(id, node, WallTime());
    malformed.Forget(path);
    return stored;
  } catch (const Error& error) {
    malformed.Report(path, node.stat, error.message());
    return std::nullopt;
  }
}

}  // namespace

JobCache::JobCache(Loop& loop, zk::Client& client)
    : malformed_(log::Logger("nodepool.zk.ZooKeeper")),
      tree_(loop, client, std::string(paths::kJobs), *this) {}

JobCache::~JobCache() = default;

const StoredHoldWish* JobCache::FindWish(const NodeId& node) const {
  auto it = wishes_.find(node);
  return it == wishes_.end() ? nullptr : &it->second;
}

bool JobCache::WantsData(std::string_view path) const {
  paths::BelowJobs place = paths::ParseBelowJobs(path);
  return place.rule || place.wish || path == paths::kHoldWishes;
}

void JobCache::OnNode(const std::string& path, const zk::NodeData& node) {
  paths::BelowJobs place = paths::ParseBelowJobs(path);
  if (path == paths::kHoldWishes) {
    wishes_version_ = node.stat.version;
  } else if (place.rule) {
    ReplaceRule(*place.rule, DecodeOrReport<StoredJobRule>(*place.rule, path, node, malformed_));
  } else if (place.wish) {
    ReplaceWish(*place.wish, DecodeOrReport<StoredHoldWish>(*place.wish, path, node, malformed_));
  }
}

void JobCache::OnGone(const std::string& path) {
  paths::BelowJobs place = paths::ParseBelowJobs(path);
  malformed_.Forget(path);
  if (path == paths::kHoldWishes) wishes_version_ = -1;
  if (place.rule) ReplaceRule(*place.rule, std::nullopt);
  if (place.wish) ReplaceWish(*place.wish, std::nullopt);
}

void JobCache::ReplaceRule(const JobId& id, std::optional<StoredJobRule> after) {
  rules_.erase(id);
  const StoredJobRule* now = nullptr;
  if (after) now = &rules_.emplace(id, std::move(*after)).first->second;
  rule_listeners_.Tell(id, now);
}

void JobCache::ReplaceWish(const NodeId& id, std::optional<StoredHoldWish> after) {
  if (const StoredHoldWish* before = FindWish(id)) {
    auto of_job = wishes_by_job_.find(before->record.hold_job);
    of_job->second.erase(id);
    if (of_job->second.empty()) wishes_by_job_.erase(of_job);
    wishes_.erase(id);
  }
  const StoredHoldWish* now = nullptr;
  if (after) {
    now = &wishes_.emplace(id, std::move(*after)).first->second;
    wishes_by_job_[now->record.hold_job].insert(id);
  }
  wish_listeners_.Tell(id, now);
}

}  // namespace nodepool::store
