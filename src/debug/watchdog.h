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

// Notices from a thread of its own that the loop does not turn: somebody, most likely a
// driver, blocks it, and everything in the program waits. While that lasts it is logged
// with the stack of the loop's thread and, where the stack tells, the name of the driver;
// at the end, with how long it took.
class Watchdog {
 public:
  struct Limits {
    Duration first = std::chrono::seconds(2);   // of a turn that is reported
    Duration again = std::chrono::seconds(30);  // while it lasts
  };
  // Names of drivers by the shared objects that they come from.
  using Owners = std::map<std::string, std::string>;

  // To be made on the loop's thread; `loop` outlives this.
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

// Whose code the stack ran, from the innermost call outwards: "driver x (its file)", or
// the function of a driver that is part of the program. Empty: nobody's in particular.
std::string CulpritOf(const ThreadStack& stack, const Watchdog::Owners& owners);

}  // namespace nodepool::debug
