#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "async/loop.h"
#include "base/log/logging.h"
#include "debug/cpu_profile.h"

namespace nodepool::debug {

// Answers SIGUSR2 (operations.md 2.4): the stacks of all threads and the tasks of the loops are
// logged to nodepool.stack_dump at debug level, and the CPU profiler is switched on, or off with
// its result.
//
// It waits on a thread of its own, so that it also shows where a blocked loop hangs. One dump runs
// at a time; signals during it are combined.
class StackDump {
 public:
  // Blocks SIGUSR2 for a StackDump to wait for, in this thread and those it starts; to be called at
  // the start of main.
  static void BlockSignal();

  // A loop, as sentences name it.
  struct Dumped {
    Loop& loop;
    std::string name;
  };

  // The files of profiles remain in `profile_folder`, if there is one. The loops outlive this.
  StackDump(std::vector<Dumped> loops, std::optional<std::string> profile_folder);
  ~StackDump();

 private:
  void Run();
  void Dump();
  void LogTasks(const Dumped& dumped);
  void ToggleProfile();

  std::vector<Dumped> loops_;
  log::Logger logger_;
  CpuProfile profile_;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace nodepool::debug
