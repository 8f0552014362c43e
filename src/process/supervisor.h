#pragma once

#include <cstdint>

namespace nodepool::process {

// Between the program that is run and this process ("we") there is a process of our own, the
// supervisor. It adopts all processes that the program's descendants leave behind
// (PR_SET_CHILD_SUBREAPER), so that it can end all of them, and it notices when we die: then it
// ends the program as if it had been asked to. So no process survives, even when we are killed.
//
//   we --control pipe--> supervisor --fork, exec--> program --> its descendants
//      <--report pipe---
//
// The control pipe carries one byte, kEnd; its end means that we are dead. The report pipe carries
// at most one Report; its end means that no process is left.

inline constexpr char kEnd = 'E';

struct Report {
  enum Kind : std::int32_t {
    kNotRun,  // `value`: errno of exec
    kExited,  // `value`: the status, as of waitpid
  };
  Kind kind;
  std::int32_t value;
};

// Everything that is needed after the fork: nothing may be allocated there.
struct SupervisorPlan {
  const char* path;
  char* const* argv;
  char* const* environment;
  int control_fd;
  int report_fd;
  int output_fd;
  std::int64_t grace_ms;
  bool has_own_mounts;
};

// To be called in the child of a fork; calls only functions that are safe there.
[[noreturn]] void Supervise(const SupervisorPlan& plan);

}  // namespace nodepool::process
