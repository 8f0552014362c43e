#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "model/foreign.h"
#include "model/node.h"

namespace nodepool {

// The maximum length of a job name or a pattern.
inline constexpr std::size_t kMaxJobName = 255;

// What to do when a job fails: hold its node (operations.md 13.5). The id is not part
// of the record: it is the znode's name.
struct JobRule {
  std::string name;                             // exact, or a regular expression that begins with ^ (D-67)
  std::optional<std::int64_t> hold_on_failure;  // at most so many nodes; unset, 0 or less: none
  Foreign foreign;
};

// Says that a node is to be held when its client returns it. The id of the node is the znode's
// name.
struct HoldNote {
  std::string hold_job;
  std::string comment;
  std::optional<WallTime> created_time;
  Foreign foreign;
};

// The error says what is wrong with which key.
Expected<JobRule> ParseJobRule(std::string_view json);
Expected<HoldNote> ParseHoldNote(std::string_view json);
std::string ToJson(const JobRule& rule);
std::string ToJson(const HoldNote& note);

// The comment of a node that is held because the job failed (operations.md 13.7).
std::string HoldComment(const std::string& job);

// Whether a hold note can hold the node: its client uses it, or has returned it and its deletion
// has not begun. Nodes already condemned by an operator or by age are not held.
bool CanBeHeld(const Node& node);

// Applies the hold note to the record.
void Hold(Node& node, const HoldNote& note, WallTime now);

// The job for which a node in state hold is held, by its `hold_job`, otherwise by a comment that
// HoldComment wrote; nullopt for other nodes (operations.md 13.9).
std::optional<std::string> HeldForJob(const Node& node);

}  // namespace nodepool
