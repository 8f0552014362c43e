#pragma once

#include <optional>
#include <string>

#include "store/records.h"
#include "store/tree.h"

namespace nodepool::store {

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

}  // namespace nodepool::store
