#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "async/loop.h"
#include "base/log/logging.h"
#include "debug/cpu_profile.h"

namespace nodepool::debug {

// Answers SIGUSR2 (operations.md 2.4): the stacks of all threads and the tasks of the
// loop go to the logger nodepool.stack_dump at debug level, and the CPU profiler is
// switched on, or off with its result.
//
// It waits on a thread of its own, so that it also tells where a loop that does not
// turn is stuck. One dump runs at a time; signals during it are taken together.
class StackDump {
 public:
  // Makes SIGUSR2 wait for a StackDump, in this thread and those it starts; for the
  // beginning of main.
  static void BlockSignal();

  // The files of profiles stay in `profile_folder`, if there is one. `loop` outlives this.
  StackDump(Loop& loop, std::optional<std::string> profile_folder);
  ~StackDump();

 private:
  void Run();
  void Dump();
  void LogTasks();
  void ToggleProfile();

  Loop& loop_;
  log::Logger logger_;
  CpuProfile profile_;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace nodepool::debug
