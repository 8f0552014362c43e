#pragma once

#include <optional>
#include <string>

#include "store/records.h"
#include "store/tree.h"

namespace nodepool::store {

// What became of a request to hold a node.
enum class NoteResult {
  kDone,
  kThere,     // there is one for the node already
  kOutdated,  // another was written or removed meanwhile: read them and decide again
};

// Rules about jobs, and requests to hold a node, in the tree (operations.md 13.5, D-67).
class Jobs {
 public:
  explicit Jobs(Tree& tree) : tree_(tree) {}

  Task<JobId> CreateRule(JobRule rule);
  // False: there is none of this id, which may be any text.
  Task<bool> DeleteRule(JobId id);
  // Records that the node is to be held. The caller has read all such records and passes
  // the version of them that he saw (JobCache::hold_notes_version).
  Task<NoteResult> AddHoldNote(NodeId node, HoldNote note, std::int32_t seen_version);
  // nullopt: there is none that can be read. A caller that has the node's lock sees every one
  // that was there before.
  Task<std::optional<HoldNote>> ReadHoldNote(NodeId node);
  // Gone already counts as success.
  Task<> RemoveHoldNote(NodeId node);
  // Of the process that handles job events; `identifier` is "<hostname>-<pid>".
  zk::Election Election(std::string identifier);

 private:
  Tree& tree_;
};

}  // namespace nodepool::store
