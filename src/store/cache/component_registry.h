#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "async/task_group.h"
#include "base/subscription.h"
#include "store/cache/listeners.h"
#include "store/malformed.h"
#include "store/records.h"
#include "zk/recipes/tree_cache.h"

namespace nodepool::store {

// Everyone who announces himself under /nodepool/components (coordination.md 8).
class ComponentRegistry : private zk::TreeCache::Listener {
 public:
  using Listener = std::function<void()>;  // the set or a record changed

  ComponentRegistry(Loop& loop, zk::Client& client);
  ~ComponentRegistry() override;

  // Makes the three directories, then follows them.
  Task<> Start();
  // The same for those who write nothing: a directory that is missing is empty.
  void Follow() { tree_.Start(); }
  Task<> Stop() { return tree_.Stop(); }
  Task<> WaitSynced() { return tree_.WaitSynced(); }
  bool synced() const { return tree_.synced(); }

  Subscription OnChange(Listener listener);

  // By path below /nodepool/components, e.g. "pool/np010000000003".
  const std::map<std::string, Component>& all() const { return components_; }
  // The registered pools only; the candidates for every request.
  std::vector<const Component*> Pools() const;
  bool Contains(const std::string& path) const { return components_.contains(path); }

  // The effective model version: the minimum over all components and our own 0.
  std::int64_t model_api() const;

  std::uint64_t malformed_count() const { return malformed_.count(); }

 private:
  Task<> Ensure(std::string directory);
  bool WantsData(std::string_view path) const override;
  void OnNode(const std::string& path, const zk::NodeData& node) override;
  void OnGone(const std::string& path) override;
  void OnSynced() override;

  Loop& loop_;
  zk::Client& client_;
  std::map<std::string, Component> components_;
  MalformedRecords malformed_;
  Listeners<> listeners_;
  zk::TreeCache tree_;
};

// Our own entry: an ephemeral sequential znode that is written again, with the
// current content, in each new session, and rewritten when the content changes.
class ComponentEntry {
 public:
  ComponentEntry(Loop& loop, zk::Client& client, Component content);
  ~ComponentEntry();  // call Unregister() first

  // Ends when the entry stands in the tree, or was unregistered meanwhile.
  Task<> Register();
  // Writes if the content differs from what stands there. Does not wait.
  void Update(Component content);
  // Deletes the entry and repeats it through faults; ends also when the session does, with
  // which the entry goes.
  Task<> Unregister();

  // "pool/np010000000003"; empty while not registered.
  const std::string& path() const;
  const Component& content() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nodepool::store
