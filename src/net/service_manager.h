#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace nodepool::net {

// Notifies the service manager that started this process, such as systemd, of its state, in
// datagrams of lines KEY=VALUE (sd_notify(3)).
class ServiceManager {
 public:
  // `address` as in NOTIFY_SOCKET: a path, or "@" and an abstract name. Null, or anything else:
  // there is no service manager, and Notify does nothing.
  explicit ServiceManager(const char* address);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Waits for a quarter of a second at most; a datagram that is not accepted by then is lost.
  void Notify(std::string_view lines);

 private:
  sockaddr_storage place_{};
  socklen_t place_size_ = 0;
  int socket_ = -1;
};

// How often it wants to get WATCHDOG=1, by WATCHDOG_USEC and WATCHDOG_PID, either of which may be
// null; nullopt: never.
std::optional<Duration> WatchdogInterval(const char* microseconds, const char* pid);

// "STATUS=..." in a single line.
std::string StatusLine(std::string_view text);

}  // namespace nodepool::net
