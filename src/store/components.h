#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/component.h"
#include "store/tree.h"

namespace nodepool::store {

// The processes that are registered in the tree.
class Components {
 public:
  explicit Components(Tree& tree) : tree_(tree) {}

  // All registered, readable components of the kind, read from ZooKeeper.
  Task<std::vector<Component>> List(ComponentKind kind);

  // The election of the process that reports the cluster's statistics, at
  // /nodepool/elections/stats (launcher.md 27.3); `identifier` is "<hostname>-<pid>".
  zk::Election StatsElection(std::string identifier);

 private:
  Tree& tree_;
};

// Creates the directories of all kinds of components, which the registry of a process that must not write
// does without. Ends early only by the error of a session that is closed for good.
Task<> EnsureComponentDirectories(Loop& loop, zk::Client& client);

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
