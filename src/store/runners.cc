#include "store/runners.h"

#include <fmt/format.h>

#include "store/paths.h"

namespace nodepool::store {
namespace {

constexpr std::size_t kIdentityDigits = 6;

// Another one has changed the record meanwhile, or an answer was lost.
Error RecordFault(std::string_view what, const std::string& path, zk::Code code) {
  bool may_go_on =
      code == zk::Code::kNodeExists || code == zk::Code::kBadVersion || code == zk::Code::kNoNode;
  return {may_go_on ? Verdict::kRetry : Verdict::kFail,
          fmt::format("{} {}: {}", what, path, zk::ToString(code))};
}

std::string IdentityPath() { return fmt::format("{}/identity", paths::kRunners); }

}  // namespace

Task<> Runners::WriteRun(RunId id, RunnerRun run) { return Write(paths::RunnerRun(id), ToJson(run)); }

Task<> Runners::WriteSet(RunnerSetKey key, RunnerSetRecord record) {
  return Write(paths::RunnerSet(key), ToJson(record));
}

Task<> Runners::DeleteRun(RunId id) { return tree_.Delete(paths::RunnerRun(id)); }

Task<> Runners::DeleteSet(RunnerSetKey key) { return tree_.Delete(paths::RunnerSet(key)); }

Task<> Runners::Write(std::string path, std::string data) {
  auto attempt = [&] { return WriteOnce(path, data); };
  co_await tree_.Repeat<void>(attempt);
}

Task<> Runners::WriteOnce(std::string path, std::string data) {
  zk::Result<zk::Stat> written = co_await tree_.client().Set(path, data);
  if (written) co_return;
  if (written.error() != zk::Code::kNoNode)
    throw Error(Verdict::kFail, fmt::format("writing {}: {}", path, zk::ToString(written.error())));
  co_await zk::EnsurePath(tree_.client(), zk::ParentPath(path));
  zk::Result<zk::Created> created = co_await tree_.client().Create(path, data, zk::CreateMode::kPersistent);
  if (!created) throw RecordFault("creating", path, created.error());
}

Task<> Runners::NoteJob(WorkflowJob job) {
  std::string path = paths::HookedJob({job.service, job.job.request});
  auto attempt = [&] { return NoteJobOnce(path, job); };
  co_await tree_.Repeat<void>(attempt);
}

// Several web servers may get deliveries of one job at a time: what changed since it was read is read again.
Task<> Runners::NoteJobOnce(std::string path, const WorkflowJob& job) {
  zk::Result<zk::NodeData> found = co_await tree_.client().Get(path);
  if (!found) {
    co_await zk::EnsurePath(tree_.client(), zk::ParentPath(path));
    zk::Result<zk::Created> created =
        co_await tree_.client().Create(path, ToJson(job), zk::CreateMode::kPersistent);
    if (!created) throw RecordFault("creating", path, created.error());
    co_return;
  }
  WorkflowJob known = ParseWorkflowJob(found->data).value_or(WorkflowJob());
  if (!Advance(known, job)) co_return;
  zk::Result<zk::Stat> written = co_await tree_.client().Set(path, ToJson(known), found->stat.version);
  if (!written) throw RecordFault("writing", path, written.error());
}

Task<> Runners::DeleteJob(HookedJobKey key) { return tree_.Delete(paths::HookedJob(key)); }

Task<> Runners::DeleteJobs(std::string service) { return tree_.DeleteAll(paths::HookedJobs(service)); }

zk::Election Runners::Election(const RunnerSetKey& key, std::string identifier) {
  return tree_.Election(paths::RunnerElection(key), std::move(identifier));
}

Task<std::string> Runners::Identity() {
  std::string made = tree_.random().UuidHex().substr(0, kIdentityDigits);
  co_await tree_.Ensure(std::string(paths::kRunners));
  auto attempt = [&] { return tree_.client().Create(IdentityPath(), made, zk::CreateMode::kPersistent); };
  co_await tree_.Repeat<zk::Result<zk::Created>>(attempt);
  zk::Result<zk::NodeData> found = co_await tree_.Get(IdentityPath());
  if (!found) throw Error(Verdict::kFail, fmt::format("{} cannot be read", IdentityPath()));
  if (found->data.size() != kIdentityDigits ||
      found->data.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Error(Verdict::kInvalid, fmt::format("{} does not hold 6 hex digits; delete it", IdentityPath()));
  co_return found->data;
}

}  // namespace nodepool::store
