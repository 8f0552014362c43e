#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "async/task_group.h"
#include "base/listeners.h"
#include "base/subscription.h"
#include "store/malformed.h"
#include "store/records.h"
#include "zk/recipes/tree_cache.h"

namespace nodepool::store {

// Every process that registered itself under /nodepool/components (coordination.md 8).
class ComponentRegistry : private zk::TreeCache::Listener {
 public:
  // `before` or `after` is null for a component that appeared or vanished; its path is as in all(). Called on
  // the loop's thread; the pointers are valid during the call.
  using Listener =
      std::function<void(const std::string& path, const Component* before, const Component* after)>;

  ComponentRegistry(Loop& loop, zk::Client& client);
  ~ComponentRegistry() override;

  // Creates the three directories, then follows them.
  Task<> Start();
  // The same for a process that must not write: a missing directory counts as empty.
  void Follow() { tree_.Start(); }
  Task<> Stop() { return tree_.Stop(); }
  Task<> WaitSynced() { return tree_.WaitSynced(); }
  bool synced() const { return tree_.synced(); }

  Subscription OnChange(Listener listener) const;

  // By path below /nodepool/components, e.g. "pool/np010000000003".
  const std::map<std::string, Component>& all() const { return components_; }
  // The registered pools only, which are the candidates for every request.
  std::vector<const Component*> Pools() const;
  bool Contains(const std::string& path) const { return components_.contains(path); }

  // The effective model version: the minimum over all components and our own 0.
  std::int64_t model_api() const;

  std::uint64_t malformed_count() const { return malformed_.count(); }

 private:
  Task<> Ensure(std::string directory);
  zk::TreeCache::Interest InterestIn(std::string_view path) const override;
  void OnNode(const std::string& path, const zk::NodeData& node) override;
  void OnGone(const std::string& path) override;
  void OnSynced() override {}

  void Replace(const std::string& path, std::optional<Component> after);

  Loop& loop_;
  zk::Client& client_;
  std::map<std::string, Component> components_;
  MalformedRecords malformed_;
  Listeners<const std::string&, const Component*, const Component*> listeners_;
  zk::TreeCache tree_;
};

// This process's entry: an ephemeral sequential znode that is written again, with the current
// content, in each new session, and rewritten when the content changes.
class ComponentEntry {
 public:
  ComponentEntry(Loop& loop, zk::Client& client, Component content);
  ~ComponentEntry();  // call Unregister() first

  // Ends when the entry is in the tree, or was unregistered meanwhile.
  Task<> Register();
  // Writes if the content differs from the stored one. Does not wait.
  void Update(Component content);
  // Deletes the entry and retries through faults; ends also with the session, since the servers
  // then delete the entry.
  Task<> Unregister();

  // "pool/np010000000003"; empty while not registered.
  const std::string& path() const;
  const Component& content() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nodepool::store
