#include "store/store.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/paths.h"
#include "store/repeat.h"

namespace nodepool::store {
namespace {

// How far back a created znode is looked for after its answer was lost.
constexpr std::size_t kNewest = 64;
constexpr std::size_t kSequenceDigits = 10;

}  // namespace

Task<zk::Result<zk::NodeData>> Store::Get(std::string path) {
  std::function<Task<zk::Result<zk::NodeData>>()> get = [&] { return client_.Get(path); };
  zk::Result<zk::NodeData> read = co_await Repeat(loop_, random_, std::move(get));
  co_return read;
}

Task<std::vector<std::string>> Store::Children(std::string path) {
  std::function<Task<zk::Result<zk::Children>>()> list = [&] { return client_.GetChildren(path); };
  zk::Result<zk::Children> children = co_await Repeat(loop_, random_, std::move(list));
  if (!children) co_return std::vector<std::string>();
  co_return std::move(children->names);
}

Task<> Store::Delete(std::string path) {
  std::function<Task<zk::Result<>>()> attempt = [&] { return client_.Delete(path); };
  zk::Result<> deleted = co_await Repeat(loop_, random_, std::move(attempt));
  if (deleted || deleted.error() == zk::Code::kNoNode) co_return;
  throw Error(Verdict::kConflict, fmt::format("deleting {}: {}", path, zk::ToString(deleted.error())));
}

Task<> Store::Ensure(std::string path) {
  struct Attempt {
    static Task<bool> Make(zk::Client& client, std::string path) {
      co_await zk::EnsurePath(client, std::move(path));
      co_return true;
    }
  };
  std::function<Task<bool>()> attempt = [&] { return Attempt::Make(client_, path); };
  co_await Repeat(loop_, random_, std::move(attempt));
}

Task<std::string> Store::CreateSequential(std::string path, std::string data, zk::CreateMode mode) {
  Backoff backoff({}, random_);
  for (bool is_retry = false;; is_retry = true) {
    std::exception_ptr fault;
    try {
      std::optional<std::string> found;
      if (is_retry) found = co_await FindNewest(path, data);
      if (found) co_return Made(std::move(*found));
      zk::Result<zk::Created> created = co_await zk::CreateWithParents(client_, path, data, mode);
      if (created) co_return Made(std::move(created->path));
      throw Error(Verdict::kFail, fmt::format("creating {}: {}", path, zk::ToString(created.error())));
    } catch (...) {
      fault = std::current_exception();
    }
    if (VerdictOf(fault) != Verdict::kRetry) std::rethrow_exception(fault);
    co_await loop_.SleepFor(backoff.Next());
  }
}

std::string Store::Made(std::string path) {
  made_.push_back(path);
  if (made_.size() > kNewest) made_.pop_front();
  return path;
}

Task<std::optional<std::string>> Store::FindNewest(std::string path, std::string data) {
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
    // Another task may have made one with the same data.
    bool is_anothers = std::ranges::find(made_, candidate) != made_.end();
    if (read && read->data == data && !is_anothers) co_return candidate;
  }
  co_return std::nullopt;
}

Task<std::optional<zk::HeldLock>> Store::TryLockNamed(std::string name) {
  std::string directory = paths::NamedLock(name);
  co_await Ensure(std::string(paths::kNamedLocks));
  std::optional<zk::HeldLock> lock = co_await locker_.TryAcquire(std::move(directory));
  co_return lock;
}

zk::Election Store::StatsElection(std::string identifier) {
  return zk::Election(loop_, client_, random_, fmt::format("{}/stats", paths::kElections),
                      std::move(identifier));
}

Task<> Store::Unlock(zk::HeldLock lock) { co_await locker_.Release(std::move(lock)); }

Task<std::vector<Component>> Store::ListComponents(ComponentKind kind) {
  std::vector<Component> components;
  std::vector<std::string> names = co_await Children(paths::Components(kind));
  for (const std::string& name : names) {
    zk::Result<zk::NodeData> node = co_await Get(paths::Components(kind) + "/" + name);
    if (!node) continue;
    Expected<Component> component = ParseComponent(kind, node->data);
    if (component) components.push_back(std::move(*component));
  }
  co_return components;
}

std::string Store::UploadPath(const UploadKey& key) { return paths::Upload(key); }

}  // namespace nodepool::store
