#pragma once

#include <optional>
#include <string>

#include "async/loop.h"
#include "net/service_manager.h"
#include "process/background.h"

namespace nodepool::daemon {

// Reports the state of a daemon to the outside: to the terminal that started it, and to the
// service manager, if there is one.
class Service {
 public:
  // To be made while the process has one thread, since it takes what concerns only this
  // process out of the environment. Both outlive this.
  Service(Loop& loop, process::Background& background);
  ~Service();

  // Nothing that can be known at once speaks against it; what it waits for is in `status`.
  void Started(const std::string& status);
  // It does its work, with so many providers.
  void Serving(std::size_t providers);

  // Told to read the configuration again; Serving() or Refused() ends it.
  void Reloading();
  // The changed configuration cannot be used.
  void Refused(const std::string& why);

  void Stopping();
  // After the session is closed: nothing else is done.
  [[noreturn]] void EndAtOnce();

 private:
  void Feed();

  Loop& loop_;
  process::Background& background_;
  net::ServiceManager manager_;
  // The loop feeds it, so that a loop that is stuck is found out.
  std::optional<Duration> watchdog_;
  Clock::TimerId timer_ = 0;
  bool is_serving_ = false;
};

}  // namespace nodepool::daemon
