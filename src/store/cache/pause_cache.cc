#include "store/cache/pause_cache.h"

#include <utility>

#include "store/paths.h"

namespace nodepool::store {

PauseCache::PauseCache(Loop& loop, zk::Client& client)
    : malformed_(log::Logger("nodepool.zk.ZooKeeper")),
      tree_(loop, client, std::string(paths::kProviderPauses), *this) {}

PauseCache::~PauseCache() = default;

const ProviderPause* PauseCache::Find(const ProviderName& provider) const {
  auto it = pauses_.find(provider);
  return it == pauses_.end() ? nullptr : &it->second;
}

zk::TreeCache::Interest PauseCache::InterestIn(std::string_view path) const {
  return paths::ParseProviderPause(path) ? zk::TreeCache::Interest::kData : zk::TreeCache::Interest::kNone;
}

void PauseCache::OnNode(const std::string& path, const zk::NodeData& node) {
  std::optional<ProviderName> provider = paths::ParseProviderPause(path);
  if (!provider) return;
  Expected<ProviderPause> parsed = ParseProviderPause(node.data);
  if (parsed) {
    malformed_.Discard(path);
  } else {
    malformed_.Report(path, node.stat, parsed.error().message());
  }
  std::optional<ProviderPause> before;
  if (auto known = pauses_.extract(*provider); !known.empty()) before = std::move(known.mapped());
  ProviderPause pause = parsed ? std::move(*parsed) : ProviderPause();
  const ProviderPause& after = pauses_.emplace(*provider, std::move(pause)).first->second;
  listeners_.Notify(*provider, before ? &*before : nullptr, &after);
}

void PauseCache::OnGone(const std::string& path) {
  std::optional<ProviderName> provider = paths::ParseProviderPause(path);
  if (!provider) return;
  malformed_.Discard(path);
  auto known = pauses_.extract(*provider);
  if (!known.empty()) listeners_.Notify(*provider, &known.mapped(), nullptr);
}

}  // namespace nodepool::store
