#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace nodepool::net {

// Tells the service manager that started this process, such as systemd, how it is: in
// datagrams of lines KEY=VALUE (sd_notify(3)).
class ServiceManager {
 public:
  // `address` as in NOTIFY_SOCKET: a path, or "@" and an abstract name. Null, or anything
  // else: there is none, and nobody is told anything.
  explicit ServiceManager(const char* address);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Waits for a quarter of a second at most; what is not taken by then is lost.
  void Notify(std::string_view lines);

 private:
  sockaddr_storage place_{};
  socklen_t place_size_ = 0;
  int socket_ = -1;
};

// How often it wants to be told WATCHDOG=1, by WATCHDOG_USEC and WATCHDOG_PID, either of
// which may be null; nullopt: not at all.
std::optional<Duration> WatchdogInterval(const char* microseconds, const char* pid);

// "STATUS=..." in one line.
std::string StatusLine(std::string_view text);

}  // namespace nodepool::net
