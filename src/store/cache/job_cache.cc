#include "store/cache/job_cache.h"

#include "store/decode.h"

namespace nodepool::store {
namespace {

template <class Stored, class Id>
std::optional<Stored> DecodeOrReport(const Id& id, const std::string& path, const zk::NodeData& node,
                                     MalformedRecords& malformed) {
  try {
    Stored stored = Decode<Stored>(id, node, WallTime());
    malformed.Discard(path);
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

const StoredHoldNote* JobCache::FindHoldNote(const NodeId& node) const {
  auto it = hold_notes_.find(node);
  return it == hold_notes_.end() ? nullptr : &it->second;
}

zk::TreeCache::Interest JobCache::InterestIn(std::string_view path) const {
  paths::BelowJobs place = paths::ParseBelowJobs(path);
  bool matters = place.rule || place.hold_note || path == paths::kHoldNotes;
  return matters ? zk::TreeCache::Interest::kData : zk::TreeCache::Interest::kNone;
}

void JobCache::OnNode(const std::string& path, const zk::NodeData& node) {
  paths::BelowJobs place = paths::ParseBelowJobs(path);
  if (path == paths::kHoldNotes) {
    hold_notes_version_ = node.stat.version;
  } else if (place.rule) {
    ReplaceRule(*place.rule, DecodeOrReport<StoredJobRule>(*place.rule, path, node, malformed_));
  } else if (place.hold_note) {
    ReplaceHoldNote(*place.hold_note,
                    DecodeOrReport<StoredHoldNote>(*place.hold_note, path, node, malformed_));
  }
}

void JobCache::OnGone(const std::string& path) {
  paths::BelowJobs place = paths::ParseBelowJobs(path);
  malformed_.Discard(path);
  if (path == paths::kHoldNotes) hold_notes_version_ = -1;
  if (place.rule) ReplaceRule(*place.rule, std::nullopt);
  if (place.hold_note) ReplaceHoldNote(*place.hold_note, std::nullopt);
}

void JobCache::ReplaceRule(const JobId& id, std::optional<StoredJobRule> after) {
  rules_.erase(id);
  const StoredJobRule* now = nullptr;
  if (after) now = &rules_.emplace(id, std::move(*after)).first->second;
  rule_listeners_.Notify(id, now);
}

void JobCache::ReplaceHoldNote(const NodeId& id, std::optional<StoredHoldNote> after) {
  if (const StoredHoldNote* before = FindHoldNote(id)) {
    auto of_job = hold_notes_by_job_.find(before->record.hold_job);
    of_job->second.erase(id);
    if (of_job->second.empty()) hold_notes_by_job_.erase(of_job);
    hold_notes_.erase(id);
  }
  const StoredHoldNote* now = nullptr;
  if (after) {
    now = &hold_notes_.emplace(id, std::move(*after)).first->second;
    hold_notes_by_job_[now->record.hold_job].insert(id);
  }
  hold_note_listeners_.Notify(id, now);
}

}  // namespace nodepool::store
