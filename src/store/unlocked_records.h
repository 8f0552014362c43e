#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/component.h"
#include "store/records.h"
#include "store/tree.h"

namespace nodepool::store {

// The switches of paused providers in the tree (http-actions.md 1).
class ProviderPauses {
 public:
  explicit ProviderPauses(Tree& tree) : tree_(tree) {}

  // Pauses the provider, or replaces the record of one that is paused already.
  Task<> Pause(ProviderName provider, ProviderPause pause);
  // False: it was not paused.
  Task<bool> Unpause(ProviderName provider);

 private:
  Task<> Write(std::string path, std::string data);

  Tree& tree_;
};

// The records of open breakers in the tree (breaker.md 4). Several launchers write them.
class Breakers {
 public:
  // What becomes of the record, as it is now; nullopt: there is none, and there is to be none. A record that
  // cannot be read counts as none.
  using Change = std::function<std::optional<Breaker>(std::optional<Breaker>)>;

  explicit Breakers(Tree& tree) : tree_(tree) {}

  // Applies the change to the newest version, and again if another client writes meanwhile; writes nothing if
  // it changes nothing. Returns the record as it is then.
  Task<std::optional<Breaker>> Update(BreakerKey key, Change change);

 private:
  Task<std::optional<Breaker>> TryUpdate(BreakerKey key, Change change);
  Task<> Write(std::string path, std::string data, std::int32_t version);
  Task<> Remove(std::string path, std::int32_t version);
  Task<> Create(std::string path, std::string data);

  Tree& tree_;
};

// The result of AddHoldNote.
enum class NoteResult {
  kDone,
  kThere,     // there is one for the node already
  kOutdated,  // another note was written or removed meanwhile: read them and decide again
};

// Rules about jobs, and hold notes, in the tree (operations.md 13.5, D-67).
class Jobs {
 public:
  explicit Jobs(Tree& tree) : tree_(tree) {}

  Task<JobId> CreateRule(JobRule rule);
  // False: there is no rule with this id, which may be any text.
  Task<bool> DeleteRule(JobId id);
  // Records that the node is to be held. The caller has read all hold notes and passes the version
  // of them that it saw (JobCache::hold_notes_version).
  Task<NoteResult> AddHoldNote(NodeId node, HoldNote note, std::int32_t seen_version);
  // A missing note counts as removed.
  Task<> RemoveHoldNote(NodeId node);
  // The election of the process that handles job events; `identifier` is "<hostname>-<pid>".
  zk::Election Election(std::string identifier);

 private:
  Tree& tree_;
};

// Sets of runners and their runs in the tree (runners.md 11). Only the daemon that is elected for a set
// writes its records, and a session that is over writes nothing, so a write replaces what is there.
class Runners {
 public:
  explicit Runners(Tree& tree) : tree_(tree) {}

  // Make the record, with missing parents, or replace it.
  Task<> WriteRun(RunId id, RunnerRun run);
  Task<> WriteSet(RunnerSetKey key, RunnerSetRecord record);
  // A missing record counts as deleted.
  Task<> DeleteRun(RunId id);
  Task<> DeleteSet(RunnerSetKey key);

  // Makes or advances the record of a job of `job.service`; an older state than the known one changes
  // nothing.
  Task<> NoteJob(WorkflowJob job);
  // As DeleteRun.
  Task<> DeleteJob(HookedJobKey key);
  // All of the service, which is not configured any more.
  Task<> DeleteJobs(std::string service);

  // The election of the daemon that serves the set; `identifier` is "<hostname>-<pid>".
  zk::Election Election(const RunnerSetKey& key, std::string identifier);

  // A text that is made once for the tree, and stays: 6 hex digits, which the names of our runners begin
  // with.
  Task<std::string> Identity();

 private:
  Task<> Write(std::string path, std::string data);
  Task<> WriteOnce(std::string path, std::string data);
  Task<> NoteJobOnce(std::string path, const WorkflowJob& job);

  Tree& tree_;
};

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
