#include "store/jobs.h"

#include <fmt/format.h>

#include "store/paths.h"

namespace nodepool::store {

Task<JobId> Jobs::CreateRule(JobRule rule) {
  std::string path = fmt::format("{}/", paths::kJobs);
  std::string created =
      co_await tree_.CreateSequential(std::move(path), ToJson(rule), zk::CreateMode::kPersistentSequential);
  co_return JobId(zk::BaseName(created));
}

Task<bool> Jobs::DeleteRule(JobId id) {
  std::string path = paths::JobRule(id);
  if (!paths::ParseBelowJobs(path).rule) co_return false;
  zk::Result<zk::NodeData> rule = co_await tree_.Get(path);
  if (!rule) co_return false;
  co_await tree_.Delete(path);
  co_return true;
}

// An attempt whose answer was lost makes the next one outdated; then the record exists.
Task<NoteResult> Jobs::AddHoldNote(NodeId node, HoldNote note, std::int32_t seen_version) {
  std::string directory(paths::kHoldNotes);
  if (seen_version < 0) {
    co_await tree_.Ensure(directory);
    co_return NoteResult::kOutdated;
  }
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::SetOp{directory, "", seen_version});
  ops.emplace_back(zk::CreateOp{paths::HoldNote(node), ToJson(note), zk::CreateMode::kPersistent});
  auto attempt = [&] { return tree_.client().Multi(ops); };
  zk::MultiResult result = co_await tree_.Repeat<zk::MultiResult>(attempt);
  if (result.ok()) co_return NoteResult::kDone;
  co_return result.failed == 1 ? NoteResult::kThere : NoteResult::kOutdated;
}

Task<> Jobs::RemoveHoldNote(NodeId node) { co_await tree_.Delete(paths::HoldNote(node)); }

// Beside Nodepool's other own locks: other programs know only their own entries of
// /nodepool/elections.
zk::Election Jobs::Election(std::string identifier) {
  return tree_.Election(paths::NamedLock("job-events"), std::move(identifier));
}

}  // namespace nodepool::store
