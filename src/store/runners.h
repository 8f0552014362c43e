#pragma once

#include <string>

#include "store/records.h"
#include "store/tree.h"

namespace nodepool::store {

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

}  // namespace nodepool::store
