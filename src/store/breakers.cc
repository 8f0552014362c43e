#include "store/breakers.h"

#include <fmt/format.h>

#include "store/paths.h"

namespace nodepool::store {
namespace {

// Another client was faster: the next attempt reads its record.
void ThrowUnless(bool is_done, const std::string& path, zk::Code code) {
  if (is_done) return;
  bool is_lost_race =
      code == zk::Code::kBadVersion || code == zk::Code::kNoNode || code == zk::Code::kNodeExists;
  throw Error(is_lost_race ? Verdict::kRetry : Verdict::kFail,
              fmt::format("writing {}: {}", path, zk::ToString(code)));
}

std::optional<Breaker> RecordIn(const zk::Result<zk::NodeData>& found) {
  if (!found) return std::nullopt;
  Expected<Breaker> parsed = ParseBreaker(found->data);
  if (!parsed) return std::nullopt;
  return std::move(*parsed);
}

}  // namespace

Task<std::optional<Breaker>> Breakers::Update(BreakerKey key, Change change) {
  std::function<Task<std::optional<Breaker>>()> attempt = [this, &key, &change] {
    return TryUpdate(key, change);
  };
  co_return co_await tree_.Repeat<std::optional<Breaker>>(attempt);
}

Task<std::optional<Breaker>> Breakers::TryUpdate(BreakerKey key, Change change) {
  std::string path = paths::Breaker(key);
  zk::Result<zk::NodeData> found = co_await tree_.Get(path);
  std::optional<Breaker> before = RecordIn(found);
  std::optional<Breaker> after = change(before);
  if (!after) {
    if (found) co_await Remove(path, found->stat.version);
    co_return std::nullopt;
  }
  std::string data = ToJson(*after);
  bool is_same = before && ToJson(*before) == data;
  if (is_same) co_return after;
  if (found) {
    co_await Write(path, data, found->stat.version);
  } else {
    co_await Create(path, data);
  }
  co_return after;
}

Task<> Breakers::Write(std::string path, std::string data, std::int32_t version) {
  zk::Result<zk::Stat> written = co_await tree_.client().Set(path, std::move(data), version);
  ThrowUnless(written.has_value(), path, written ? zk::Code::kOk : written.error());
}

Task<> Breakers::Remove(std::string path, std::int32_t version) {
  zk::Result<> removed = co_await tree_.client().Delete(path, version);
  bool is_gone = removed || removed.error() == zk::Code::kNoNode;
  ThrowUnless(is_gone, path, removed ? zk::Code::kOk : removed.error());
}

Task<> Breakers::Create(std::string path, std::string data) {
  co_await zk::EnsurePath(tree_.client(), std::string(paths::kBreakers));
  zk::Result<zk::Created> created =
      co_await tree_.client().Create(path, std::move(data), zk::CreateMode::kPersistent);
  ThrowUnless(created.has_value(), path, created ? zk::Code::kOk : created.error());
}

}  // namespace nodepool::store
