#pragma once

#include <atomic>
#include <map>
#include <semaphore>
#include <string>
#include <thread>

#include "async/loop.h"
#include "base/log/logging.h"
#include "debug/stack_dump.h"

namespace nodepool::debug {

// Notices, on a thread of its own, when a loop is blocked, most likely by a driver, while everything
// on that loop waits. While that lasts, it logs the stack of the loop's thread and, where the stack
// shows it, the name of the driver; at the end, how long it took. The first of several watchdogs also
// reports when the whole process did not run.
class Watchdog {
 public:
  // As sentences name them: "The loop has been blocked ...; every request ... waits".
  struct Watched {
    Loop& loop;
    std::string name;
    std::string who_waits;
  };
  struct Limits {
    Duration first = std::chrono::seconds(2);   // how long a turn takes before it is reported
    Duration again = std::chrono::seconds(30);  // between reports while it lasts
  };
  // Names of drivers by the shared objects that they come from.
  using Owners = std::map<std::string, std::string>;

  // The loop outlives this. To be destroyed on its thread, or when it does not run any more.
  Watchdog(Watched watched, Owners owners) : Watchdog(std::move(watched), std::move(owners), Limits()) {}
  Watchdog(Watched watched, Owners owners, Limits limits);
  ~Watchdog();

 private:
  void Run();
  void Beat();
  void Report(Duration silence);

  Watched watched_;
  Owners owners_;
  Limits limits_;
  log::Logger logger_{"nodepool.watchdog"};
  std::atomic<int> loop_thread_{0};  // 0: the loop has not run yet
  Clock::TimerId timer_ = 0;
  std::atomic<std::uint64_t> beats_{0};
  std::binary_semaphore ending_{0};
  std::thread thread_;
};

// The suspect for a blocked loop, from the innermost call outwards: "driver x (its file)", or the
// function of a driver that is built into the program. Empty: none found.
std::string SuspectIn(const ThreadStack& stack, const Watchdog::Owners& owners);

}  // namespace nodepool::debug
