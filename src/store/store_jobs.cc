#include <fmt/format.h>

#include "store/paths.h"
#include "store/repeat.h"
#include "store/store.h"

namespace nodepool::store {

Task<JobId> Store::CreateJobRule(JobRule rule) {
  std::string path = fmt::format("{}/", paths::kJobs);
  std::string created =
      co_await CreateSequential(std::move(path), ToJson(rule), zk::CreateMode::kPersistentSequential);
  co_return JobId(zk::BaseName(created));
}

Task<bool> Store::DeleteJobRule(JobId id) {
  std::string path = paths::JobRule(id);
  if (!paths::ParseBelowJobs(path).rule) co_return false;
  zk::Result<zk::NodeData> rule = co_await Get(path);
  if (!rule) co_return false;
  co_await Delete(path);
  co_return true;
}

// An attempt whose answer was lost makes the next one outdated; then the wish is seen.
Task<Wished> Store::AddHoldWish(NodeId node, HoldWish wish, std::int32_t seen_version) {
  std::string directory(paths::kHoldWishes);
  if (seen_version < 0) {
    co_await Ensure(directory);
    co_return Wished::kOutdated;
  }
  std::vector<zk::Op> ops;
  ops.emplace_back(zk::SetOp{directory, "", seen_version});
  ops.emplace_back(zk::CreateOp{paths::HoldWish(node), ToJson(wish), zk::CreateMode::kPersistent});
  std::function<Task<zk::MultiResult>()> attempt = [&] { return client_.Multi(ops); };
  zk::MultiResult result = co_await Repeat(loop_, random_, std::move(attempt));
  if (result.ok()) co_return Wished::kDone;
  co_return result.failed == 1 ? Wished::kThere : Wished::kOutdated;
}

Task<std::optional<HoldWish>> Store::ReadHoldWish(NodeId node) {
  zk::Result<zk::NodeData> found = co_await Get(paths::HoldWish(node));
  if (!found) co_return std::nullopt;
  Expected<HoldWish> wish = ParseHoldWish(found->data);
  if (!wish) co_return std::nullopt;  // JobCache reports it
  co_return std::move(*wish);
}

Task<> Store::RemoveHoldWish(NodeId node) { co_await Delete(paths::HoldWish(node)); }

// Beside our other locks: of /nodepool/elections others know only what they put there.
zk::Election Store::JobsElection(std::string identifier) {
  return zk::Election(loop_, client_, random_, paths::NamedLock("job-events"), std::move(identifier));
}

}  // namespace nodepool::store
