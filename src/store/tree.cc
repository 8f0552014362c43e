#include "store/tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/node_request.h"
#include "store/record_kinds.h"

namespace nodepool::store {

namespace {

// How far back a created znode is searched for after its answer was lost.
constexpr std::size_t kNewest = 64;
constexpr std::size_t kSequenceDigits = 10;

}  // namespace

Task<zk::Result<zk::NodeData>> Tree::Get(std::string path) {
  auto get = [&] { return client_.Get(path); };
  zk::Result<zk::NodeData> read = co_await Repeat<zk::Result<zk::NodeData>>(get);
  co_return read;
}

Task<std::vector<std::string>> Tree::Children(std::string path) {
  auto list = [&] { return client_.GetChildren(path); };
  zk::Result<zk::Children> children = co_await Repeat<zk::Result<zk::Children>>(list);
  if (!children) co_return std::vector<std::string>();
  co_return std::move(children->names);
}

Task<> Tree::Ensure(std::string path) {
  auto ensure = [&] { return zk::EnsurePath(client_, path); };
  co_await Repeat<void>(ensure);
}

Task<> Tree::Make(std::string path) {
  auto create = [&] { return client_.Create(path, "", zk::CreateMode::kPersistent); };
  zk::Result<zk::Created> created = co_await Repeat<zk::Result<zk::Created>>(create);
  if (created || created.error() == zk::Code::kNodeExists) co_return;
  throw Error(created.error() == zk::Code::kNoNode ? Verdict::kNotFound : Verdict::kFail,
              fmt::format("creating {}: {}", path, zk::ToString(created.error())));
}

Task<> Tree::Delete(std::string path) {
  auto remove = [&] { return client_.Delete(path); };
  zk::Result<> deleted = co_await Repeat<zk::Result<>>(remove);
  if (deleted || deleted.error() == zk::Code::kNoNode) co_return;
  throw Error(Verdict::kConflict, fmt::format("deleting {}: {}", path, zk::ToString(deleted.error())));
}

Task<> Tree::DeleteAll(std::string path) {
  auto remove = [&] { return zk::DeleteRecursive(client_, path); };
  zk::Result<> deleted = co_await Repeat<zk::Result<>>(remove);
  if (deleted || deleted.error() == zk::Code::kNoNode) co_return;
  throw Error(Verdict::kConflict, fmt::format("deleting {}: {}", path, zk::ToString(deleted.error())));
}

Task<std::string> Tree::CreateSequential(std::string path, std::string data, zk::CreateMode mode) {
  bool may_exist = false;
  auto attempt = [&] { return CreateOrFind(path, data, mode, std::exchange(may_exist, true)); };
  std::string created = co_await Repeat<std::string>(attempt);
  created_.push_back(created);
  if (created_.size() > kNewest) created_.pop_front();
  co_return created;
}

Task<std::string> Tree::CreateOrFind(std::string path, std::string data, zk::CreateMode mode,
                                     bool may_exist) {
  std::optional<std::string> found;
  if (may_exist) found = co_await FindNewest(path, data);
  if (found) co_return std::move(*found);
  zk::Result<zk::Created> created = co_await zk::CreateWithParents(client_, path, data, mode);
  if (created) co_return std::move(created->path);
  throw Error(Verdict::kFail, fmt::format("creating {}: {}", path, zk::ToString(created.error())));
}

namespace {

// Whether a record is the request that was created with `data`: launchers may have accepted or declined it
// before its creator looks for it. Each request that Nodepool creates has an event id of its own.
bool IsRequestOf(const std::string& data, const std::string& record, WallTime now) {
  Expected<NodeRequest> created = ParseNodeRequest(data, now);
  Expected<NodeRequest> found = ParseNodeRequest(record, now);
  return created && found && created->event_id && found->event_id == created->event_id;
}

}  // namespace

Task<std::optional<std::string>> Tree::FindNewest(std::string path, std::string data) {
  std::string directory = zk::ParentPath(path);
  std::string prefix = zk::BaseName(path);
  co_await client_.Sync(directory);
  zk::Result<zk::Children> children = co_await client_.GetChildren(directory);
  if (!children) co_return std::nullopt;
  std::vector<std::string>& names = children->names;
  std::erase_if(names, [&](const std::string& name) {
    return !name.starts_with(prefix) || name.size() != prefix.size() + kSequenceDigits;
  });
  std::ranges::sort(names, std::ranges::greater());
  if (names.size() > kNewest) names.resize(kNewest);
  for (const std::string& name : names) {
    std::string candidate = directory + "/" + name;
    zk::Result<zk::NodeData> read = co_await client_.Get(candidate);
    // Another task may have created one with the same data.
    bool is_anothers = std::ranges::find(created_, candidate) != created_.end();
    bool is_same = read && (read->data == data || IsRequestOf(data, read->data, Now()));
    if (is_same && !is_anothers) co_return candidate;
  }
  co_return std::nullopt;
}

Task<std::optional<zk::HeldLock>> Tree::TryLock(std::string directory, std::string identifier) {
  return locker_.TryAcquire(std::move(directory), std::move(identifier));
}

Task<std::optional<zk::Locker::Acquired>> Tree::TryLockFree(std::string directory,
                                                            std::vector<zk::ReadOp> reads) {
  return locker_.TryAcquireFree(std::move(directory), std::move(reads));
}

Task<std::optional<zk::HeldLock>> Tree::Lock(std::string directory, SteadyTime deadline,
                                             std::string identifier) {
  return locker_.Acquire(std::move(directory), deadline, std::move(identifier));
}

Task<std::optional<zk::HeldLock>> Tree::TryLockNamed(std::string name) {
  co_await Ensure(std::string(paths::kNamedLocks));
  std::optional<zk::HeldLock> lock = co_await TryLock(paths::NamedLock(name));
  co_return lock;
}

Task<> Tree::Unlock(zk::HeldLock lock) { return locker_.Release(std::move(lock)); }

zk::Election Tree::Election(std::string directory, std::string identifier) {
  return zk::Election(loop_, client_, random_, std::move(directory), std::move(identifier));
}

}  // namespace nodepool::store
