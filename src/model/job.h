#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "model/node.h"
#include "model/raw_json.h"
#include "model/runner.h"

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

// Longer messages about jobs are refused.
inline constexpr std::size_t kMaxJobMessageBytes = 64 * 1024;

// A CI system's message about a run of a job (operations.md 13.6).
struct JobEvent {
  enum class Topic { kStarted, kCompleted, kFinalized };

  Topic topic = Topic::kFinalized;
  std::string job;
  std::string node_name;              // empty: it did not run on a node of Nodepool
  std::optional<std::string> status;  // the result, "SUCCESS" if it is good

  // An end without a status counts as failure (operations.md 13.7).
  bool is_failure() const { return topic == Topic::kFinalized && status != "SUCCESS"; }
};

// Parses "TOPIC JSON", as publishers send it. The error says what is wrong; it quotes only keys and
// the topic.
Expected<JobEvent> ParseJobMessage(std::string_view message);

// Parses JSON without a topic in front, whose key `event` may name the topic; the default is
// onFinalized.
Expected<JobEvent> ParseJobEvent(std::string_view json);

// How far a job of GitHub's workflows is; it only goes forward.
enum class WorkflowJobState { kQueued, kInProgress, kCompleted };

std::string_view ToString(WorkflowJobState state);
std::optional<WorkflowJobState> ParseWorkflowJobState(std::string_view text);

// A job of GitHub's workflows, as webhooks and lists show it (runners.md 3): the record of a delivery, too,
// whose id is the job's number. All texts are foreign, and bounded.
struct WorkflowJob {
  std::optional<WorkflowJobState> state;  // absent only in a default object
  std::string service;                    // in a record: name of the service
  RunnerJob job;                          // `request` is the job's number
  std::int64_t run = 0;                   // number of its workflow's run
  std::vector<std::string> labels;        // that its runner needs, all of them
  std::string runner_name;                // that has it, or had it; empty: none
  std::string result;                     // of a completed one: "success", "failure", "cancelled" ...
  std::optional<WallTime> seen_time;      // when it was seen in this state first
  Foreign foreign;
};

// A job as GitHub's JSON has it in lists and events; nullopt: it has no number, or a state in which it
// neither waits for a runner nor has or had one.
std::optional<WorkflowJob> ReadWorkflowJob(const boost::json::object& object, const std::string& repository);

// The job of a delivery's body, which is the event `workflow_job`; nullopt as above. Error(kInvalid): it is
// no such event; the message quotes nothing.
Expected<std::optional<WorkflowJob>> ParseWorkflowJobEvent(std::string_view body);

// The record.
Expected<WorkflowJob> ParseWorkflowJob(std::string_view json);
std::string ToJson(const WorkflowJob& job);

// Takes over what `newer` says, unless it is as old as what is known, or older. True: it has changed.
bool Advance(WorkflowJob& known, const WorkflowJob& newer);

}  // namespace nodepool
