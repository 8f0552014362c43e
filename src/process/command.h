#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/loop.h"
#include "async/task.h"
#include "base/clock.h"

namespace nodepool::process {

// Values by name.
using Environment = std::map<std::string, std::string>;

// A program to run, and its limits.
struct Command {
  // The first word is searched in the environment's PATH unless it has a slash. All words are
  // passed on unchanged: there is no shell.
  std::vector<std::string> argv;
  Environment environment;  // all of it; may hold secrets
  // Standard output and error are appended to this file as they arrive; it is created when it does
  // not exist. None: the last kMaxRetainedOutput bytes of them are returned.
  std::optional<std::string> log_path;
  // After this time the program is asked to end.
  Duration timeout = std::chrono::seconds(60);
  // How long a program that is asked to end (SIGTERM to it alone) may clean up before it is killed
  // with all processes that it has started.
  Duration grace = std::chrono::seconds(30);
  // Mounts made by it are visible only to it and its descendants and vanish with the last of them.
  // Without effect unless this process may mount.
  bool has_own_mounts = false;
};

// Bytes of output that are returned of a program without a log file.
inline constexpr std::size_t kMaxRetainedOutput = 64 * 1024;

// How a program ended.
struct Exit {
  int code = 0;  // its exit status; negative: the signal that ended it
  bool is_timed_out = false;
  std::string output;  // unless it was written to a file
  bool is_good() const { return code == 0 && !is_timed_out; }
};

// Runs programs. Implementations: SystemRunner; fakes in tests.
class Runner {
 public:
  virtual ~Runner() = default;

  // Ends when the program and all processes that it started, in whatever session or process group,
  // have ended; processes that outlive the program are ended after a moment. When the task is
  // cancelled, the program is asked to end, with its grace, and then kCancelled is thrown.
  // Error(kInvalid): there is no such program, or it cannot be run. Error(kFail): the log cannot be
  // written, or the system refuses.
  virtual Task<Exit> Run(Command command) = 0;
};

// The words of a command line by the shell's rules: quotes and backslashes count,
// nothing is expanded. Throws Error(kInvalid) when a quote is not closed.
std::vector<std::string> SplitWords(std::string_view line);

// The environment of this process.
Environment OwnEnvironment();

// A program's arguments or environment, in the form that the system call takes.
class Texts {
 public:
  explicit Texts(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;

  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

// "KEY=value" of each variable.
inline std::vector<std::string> EntriesOf(const Environment& environment) {
  std::vector<std::string> entries;
  for (const auto& [key, value] : environment) entries.push_back(key + "=" + value);
  return entries;
}

// Runs programs as child processes, each below a supervisor (supervisor.h).
class SystemRunner : public Runner {
 public:
  explicit SystemRunner(Loop& loop) : loop_(loop) {}

  Task<Exit> Run(Command command) override;

 private:
  Loop& loop_;
};

}  // namespace nodepool::process
