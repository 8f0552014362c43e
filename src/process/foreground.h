#pragma once

#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>
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

}  // namespace nodepool::process
