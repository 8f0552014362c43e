#include "store/provider_pauses.h"

#include <fmt/format.h>

#include "store/paths.h"

namespace nodepool::store {

Task<> ProviderPauses::Pause(ProviderName provider, ProviderPause pause) {
  std::string path = paths::ProviderPause(provider);
  std::string data = ToJson(pause);
  auto attempt = [&] { return Write(path, data); };
  co_await tree_.Repeat<void>(attempt);
}

Task<> ProviderPauses::Write(std::string path, std::string data) {
  zk::Result<zk::Stat> written = co_await tree_.client().Set(path, data);
  if (written) co_return;
  if (written.error() == zk::Code::kNoNode) {
    co_await zk::EnsurePath(tree_.client(), std::string(paths::kProviderPauses));
    zk::Result<zk::Created> created = co_await tree_.client().Create(path, data, zk::CreateMode::kPersistent);
    if (created) co_return;
    // Another process was faster: the next attempt replaces its record.
    if (created.error() == zk::Code::kNodeExists)
      throw Error(Verdict::kRetry, fmt::format("creating {}: it exists", path));
    throw Error(Verdict::kFail, fmt::format("creating {}: {}", path, zk::ToString(created.error())));
  }
  throw Error(Verdict::kFail, fmt::format("writing {}: {}", path, zk::ToString(written.error())));
}

Task<bool> ProviderPauses::Unpause(ProviderName provider) {
  std::string path = paths::ProviderPause(provider);
  zk::Result<zk::NodeData> found = co_await tree_.Get(path);
  if (!found) co_return false;
  co_await tree_.Delete(path);
  co_return true;
}

}  // namespace nodepool::store
