#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace nodepool {

// States of records, with the words of the wire (coordination.md 5). Each comment
// says who sets the state and what follows.

enum class NodeState {
  kInit,      // launcher, at creation; becomes building once it is locked
  kBuilding,  // launcher, under its lock; unlocked it is garbage
  kTesting,   // set by no program any more; read from old records
  kReady,     // launcher; free, or allocated to a fulfilled request
  kInUse,     // the client, under its lock; unlocked it is garbage
  kUsed,      // the client, before unlocking; deleted next
  kHold,      // client or operator; held until its limit or an operator ends it
  kDeleting,  // any process or operator; only the deleted-node worker deletes
  kDeleted,   // the deleted-node worker, right before the record is removed
  kFailed,    // launcher: the launch failed for good (D-11); deleted next
  kAborted,   // launcher: the cloud refused for quota; deleted next
};

enum class RequestState {
  kRequested,  // client; also a launcher that returns it
  kPending,    // launcher holding the request's lock
  kFulfilled,  // launcher; nodes are ready, unlocked and listed
  kFailed,     // launcher: every registered pool declined
};

enum class ImageState { kBuilding, kUploading, kReady, kDeleting, kFailed };

std::string_view ToString(NodeState state);
std::string_view ToString(RequestState state);
std::string_view ToString(ImageState state);
std::optional<NodeState> ParseNodeState(std::string_view text);
std::optional<RequestState> ParseRequestState(std::string_view text);
std::optional<ImageState> ParseImageState(std::string_view text);

// Every word that names a state of the kind.
std::vector<std::string_view> NodeStateWords();
std::vector<std::string_view> RequestStateWords();
std::vector<std::string_view> ImageStateWords();

}  // namespace nodepool
