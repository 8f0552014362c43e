#pragma once

#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "async/loop.h"
#include "process/command.h"

namespace nodepool::process {

// A program that shares our terminal: it has our standard input, output and error unless `output` says
// otherwise, belongs to our process group, and is killed when we die. What it starts is not looked after,
// unlike what a Runner runs.
struct ForegroundCommand {
  std::vector<std::string> argv;  // the first word is searched in PATH unless it has a slash
  Environment environment = OwnEnvironment();
  // SIGINT, SIGQUIT, SIGTERM and SIGHUP are ignored by it from its start, as under nohup; it may decide
  // otherwise. For programs that we end ourselves when a signal arrives.
  bool ignores_interruption = false;
  // The descriptor for its standard output and error; its standard input is empty then, or `input`.
  std::optional<int> output = std::nullopt;
  std::optional<int> input = std::nullopt;
};

class ForegroundProcess {
 public:
  // Starts the program. Error(kFail): the system refuses.
  ForegroundProcess(Loop& loop, const ForegroundCommand& command);
  // Kills it if it still runs.
  ~ForegroundProcess();
  ForegroundProcess(const ForegroundProcess&) = delete;
  ForegroundProcess& operator=(const ForegroundProcess&) = delete;

  // Ends when the program has ended. Returns its exit status as shells do: 128 and the signal that ended it;
  // 127 if it could not be run.
  Task<int> Wait();
  bool is_running() const { return pid_ > 0; }
  void Send(int signal);

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  boost::asio::posix::stream_descriptor end_;  // readable when the program has ended
};

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
