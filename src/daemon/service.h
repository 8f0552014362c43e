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
  // Create it while the process has one thread, since it removes what concerns only this process from the
  // environment. Both outlive this.
  Service(Loop& loop, process::Background& background);
  ~Service();

  // The daemon has started as far as can be known at once; `status` says what it waits for.
  void Started(const std::string& status);
  // The daemon is serving, with this number of providers.
  void Serving(std::size_t providers);

  // The configuration is being read again; Serving() or Refused() follows.
  void Reloading();
  // The changed configuration cannot be used.
  void Refused(const std::string& why);

  void Stopping();
  // Ends the process at once, as std::quick_exit does; call after the session is closed.
  [[noreturn]] void EndAtOnce();

 private:
  void Feed();

  Loop& loop_;
  process::Background& background_;
  net::ServiceManager manager_;
  // The loop feeds the watchdog, so that a stuck loop is detected.
  std::optional<Duration> watchdog_;
  Clock::TimerId timer_ = 0;
  bool is_serving_ = false;
};

}  // namespace nodepool::daemon
