#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/runner.h"

namespace nodepool {

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
