#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "base/clock.h"

namespace nodepool::process {

using Environment = std::map<std::string, std::string>;

// A program to run, and within what bounds.
struct Command {
  // The first word is looked up in the environment's PATH unless it has a slash. It
  // is passed on as it is: there is no shell.
  std::vector<std::string> argv;
  Environment environment;  // all of it; may hold secrets
  // Standard output and error go to the end of this file as they come, which is made
  // when it is not there. None: they are kept, the last kMaxRetainedOutput bytes of them.
  std::optional<std::string> log_path;
  // When it is over the program is told to end.
  Duration timeout = std::chrono::seconds(60);
  // How long a program that is told to end (SIGTERM to it alone) may tidy up before it
  // is killed with all that it has started.
  Duration grace = std::chrono::seconds(30);
  // What it mounts is seen by it and its descendants alone and vanishes with the last of
  // them. Without effect unless we may mount ourselves.
  bool has_own_mounts = false;
};

inline constexpr std::size_t kMaxRetainedOutput = 64 * 1024;

// How a program came to its end.
struct Exit {
  int code = 0;  // as it said; negative: the signal that ended it
  bool is_timed_out = false;
  std::string output;  // unless it went to a file
  bool is_good() const { return code == 0 && !is_timed_out; }
};

// Runs programs. Implementations: SystemRunner; fakes in tests.
class Runner {
 public:
  virtual ~Runner() = default;

  // Ends when the program and everything that it started, in whatever session or
  // process group, has ended; what outlives the program itself is ended after a
  // moment. When the task is told to stop, so is the program, with its grace, and then
  // kCancelled is thrown. Error(kInvalid): there is no such program, or it cannot be
  // run. Error(kFail): the log cannot be written, the system refuses.
  virtual Task<Exit> Run(Command command) = 0;
};

// The words of a command line by the shell's rules: quotes and backslashes count,
// nothing is expanded. Throws Error(kInvalid) when a quote is not closed.
std::vector<std::string> SplitWords(std::string_view line);

// The environment of this process.
Environment OwnEnvironment();

}  // namespace nodepool::process
