#pragma once

#include <atomic>
#include <map>
#include <semaphore>
#include <string>
#include <thread>

#include "async/loop.h"
#include "base/log/logging.h"
#include "debug/native_stacks.h"

namespace nodepool::debug {

// Notices, on a thread of its own, when the loop is blocked, most likely by a driver, while
// everything in the program waits. While that lasts, it logs the stack of the loop's thread and,
// where the stack shows it, the name of the driver; at the end, how long it took. It also reports when the
// whole process did not run.
class Watchdog {
 public:
  struct Limits {
    Duration first = std::chrono::seconds(2);   // how long a turn takes before it is reported
    Duration again = std::chrono::seconds(30);  // between reports while it lasts
  };
  // Names of drivers by the shared objects that they come from.
  using Owners = std::map<std::string, std::string>;

  // To be constructed on the loop's thread; `loop` outlives this.
  Watchdog(Loop& loop, Owners owners) : Watchdog(loop, std::move(owners), Limits()) {}
  Watchdog(Loop& loop, Owners owners, Limits limits);
  ~Watchdog();

 private:
  void Run();
  void Beat();
  void Report(Duration silence);

  Loop& loop_;
  Owners owners_;
  Limits limits_;
  log::Logger logger_{"nodepool.watchdog"};
  int loop_thread_;
  Clock::TimerId timer_ = 0;
  std::atomic<std::uint64_t> beats_{0};
  std::binary_semaphore ending_{0};
  std::thread thread_;
};

// The suspect for a blocked loop, from the innermost call outwards: "driver x (its file)", or the
// function of a driver that is built into the program. Empty: none found.
std::string SuspectIn(const ThreadStack& stack, const Watchdog::Owners& owners);

}  // namespace nodepool::debug
