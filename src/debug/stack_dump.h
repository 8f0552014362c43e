#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "async/loop.h"
#include "base/clock.h"
#include "base/log/logging.h"
#include "debug/cpu_profile.h"

namespace nodepool::debug {

// The threads of this process, by the ids that the kernel gives them. Linux only.

std::vector<int> Threads();  // sorted

std::string NameOf(int thread);

// Processor time since the thread began; nullopt when it has ended.
std::optional<Duration> CpuTimeOf(int thread);

// What the threads of this process are doing, as seen from inside. Linux only.

struct ThreadStack {
  int id = 0;  // the kernel's thread id
  std::string name;
  bool is_background = true;         // not the process's first thread
  std::vector<std::string> frames;   // outermost first
  std::vector<std::string> modules;  // the file that each frame's code comes from
};

// The stacks of all threads; each is interrupted for a moment (SIGRTMIN+5). A thread
// that does not answer within 100 ms has no frames.
std::vector<ThreadStack> NativeStacks();
// The same of one thread.
ThreadStack StackOf(int thread);

// The function at a code address, readable, or the module and the offset in it.
std::string SymbolOf(const void* address);

// The text as in operations.md 2.4.
std::string ToText(const std::vector<ThreadStack>& stacks);

// The running tasks, one line each, oldest first: name, subject, age. In this program tasks hang,
// not threads.
std::string DescribeTasks(const TaskRegistry& tasks, SteadyTime now);

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
