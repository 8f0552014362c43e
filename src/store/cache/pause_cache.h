#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/listeners.h"
#include "base/subscription.h"
#include "store/malformed.h"
#include "store/records.h"
#include "zk/recipes/tree_cache.h"

namespace nodepool::store {

// The switches of paused providers, in memory. One that cannot be read is reported once per version, and
// pauses its provider as well, without a reason.
class PauseCache : private zk::TreeCache::Listener {
 public:
  // `before` is null for a provider that was not paused, `after` for one that is not any more; valid during
  // the call.
  using Listener =
      std::function<void(const ProviderName&, const ProviderPause* before, const ProviderPause* after)>;

  PauseCache(Loop& loop, zk::Client& client);
  ~PauseCache() override;

  void Start() { tree_.Start(); }
  Task<> Stop() { return tree_.Stop(); }
  Task<> WaitSynced() { return tree_.WaitSynced(); }
  bool synced() const { return tree_.synced(); }
  // Ends when the cache shows everything that any client wrote before this was called.
  Task<> CatchUp() { return tree_.CatchUp(); }

  Subscription OnChange(Listener listener) const { return listeners_.Add(std::move(listener)); }

  // Null: the provider is not paused.
  const ProviderPause* Find(const ProviderName& provider) const;
  const std::map<ProviderName, ProviderPause>& all() const { return pauses_; }

  std::uint64_t malformed_count() const { return malformed_.count(); }

 private:
  zk::TreeCache::Interest InterestIn(std::string_view path) const override;
  void OnNode(const std::string& path, const zk::NodeData& node) override;
  void OnGone(const std::string& path) override;
  void OnSynced() override {}

  std::map<ProviderName, ProviderPause> pauses_;
  MalformedRecords malformed_;
  Listeners<const ProviderName&, const ProviderPause*, const ProviderPause*> listeners_;
  zk::TreeCache tree_;
};

}  // namespace nodepool::store
