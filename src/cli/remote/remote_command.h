#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "async/loop.h"
#include "cli/command.h"
#include "net/ssh/ssh_files.h"
#include "process/supervisor.h"

namespace nodepool::cli {

// What is to be run on a node.
struct RemoteCommand {
  std::string line;    // for the node's shell; empty: an interactive login
  std::string folder;  // on the node; empty: where the login begins
  bool has_terminal = false;
  std::optional<int>
      output;  // a descriptor for all that it prints; none: our standard input, output and error
};

// Runs it by ssh. `status` becomes its exit status, also if the task was cancelled and the command could be
// ended: then the signal that interrupted us is sent to everything that it has started, and after ten seconds
// the connection is closed.
Task<> RunOnNode(Console& console, const net::SshFiles& files, std::string node, RemoteCommand command,
                 int& status);

// Runs a program here to its end. `status` as above; it gets the signal, too, unless the terminal has sent
// it.
Task<> RunHere(Console& console, process::ForegroundCommand command, int& status);

// One word of a shell's command line, whatever is in `text`.
std::string Quoted(const std::string& text);

// A command as the user gave it: one word is a line for the login shell, several are a program and its
// arguments.
std::string ShellLine(const std::vector<std::string>& command);

// The line for the node's shell that runs `line` in `folder` (empty: where the login begins) and ends with
// its status. A file named after `token` says meanwhile which processes SignalLine() is for.
std::string TrackedLine(const std::string& line, const std::string& folder, const std::string& token);

// The line that sends the signal to everything that the tracked line has started. `signal` is 2, 15 and so
// on.
std::string SignalLine(int signal, const std::string& token);

// Puts a label before each line that a program writes, for programs that run at the same time.
class LabelledOutput {
 public:
  // `label` is written as it is. `out` outlives it. Error(kFail): the system gives no pipe.
  LabelledOutput(Loop& loop, std::string label, std::ostream& out);
  ~LabelledOutput();
  LabelledOutput(const LabelledOutput&) = delete;
  LabelledOutput& operator=(const LabelledOutput&) = delete;

  // For the program. To be closed here once it has been started.
  int writing_end() const { return writing_end_; }
  void CloseWritingEnd();
  // Ends when nobody can write any more. A line longer than 64 KiB comes in pieces.
  Task<> Follow();

 private:
  void Print(std::string_view line);

  const std::string label_;
  std::ostream& out_;
  boost::asio::posix::stream_descriptor read_;
  int writing_end_ = -1;
};

}  // namespace nodepool::cli
