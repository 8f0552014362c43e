#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "model/runner.h"

namespace nodepool::sched {

// What is known of a run with a node: its record, its lease, what the node and the service say (runners.md 8,
// 9).
struct RunView {
  RunState state = RunState::kNode;
  WallTime node_time{};                  // since when it has the node
  WallTime job_time{};                   // and its job; meaningless before
  std::optional<WallTime> awaits_since;  // since when it is online while a job waits
  bool has_node = true;                  // its lease holds the node
  // By the session with the node:
  bool is_ready = false;        // the node waits for the configuration: nothing was started there
  bool is_handed_over = false;  // the configuration was given to this session
  bool is_started = false;      // the process exists, or has existed
  bool is_online = false;
  bool has_worker = false;                    // a process runs a job
  std::optional<int> status;                  // the process has ended so; -1: not known how
  bool has_failed = false;                    // the node refuses to start it
  std::optional<WallTime> unreachable_since;  // no session with the node
  // By the service:
  bool is_told_job = false;            // a message says that it has a job
  std::optional<WallTime> told_end;    // a message says that the job is over
  std::optional<WallTime> gone_since;  // the service does not know the runner, by a look-up
  // By us:
  bool is_surplus = false;  // nobody needs it
  bool is_warned = false;   // of a job that takes too long
};

struct RunTimes {
  Duration start = std::chrono::seconds(120);
  Duration pickup = std::chrono::seconds(300);
  Duration job = std::chrono::hours(6);
  bool enforces_job = false;
};

enum class RunStep {
  kWait,
  kRegister,     // the node waits: make the registration and hand its configuration over
  kNoteStarted,  // write what was seen
  kNoteOnline,
  kNoteJob,
  kWarnOfJob,  // it takes too long
  kEnd,        // the process is over, or the node is gone
  kTakeBack,   // delete the registration, unless it is busy; then end the process and the run
};

struct RunDecision {
  RunStep step = RunStep::kWait;
  std::string_view reason;           // of an end; a literal
  bool is_phantom = false;           // of kTakeBack: the job that it was started for never came
  WallTime until = WallTime::max();  // of kWait: decide again then at the latest
};

RunDecision DecideRun(const RunView& view, const RunTimes& times, WallTime now);

}  // namespace nodepool::sched
