#include "daemon/service.h"

#include <fmt/format.h>

#include <cstdlib>

namespace nodepool::daemon {

Service::Service(Loop& loop, process::Background& background)
    : loop_(loop),
      background_(background),
      manager_(std::getenv("NOTIFY_SOCKET")),
      watchdog_(net::WatchdogInterval(std::getenv("WATCHDOG_USEC"), std::getenv("WATCHDOG_PID"))) {
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  if (watchdog_) Feed();
}

Service::~Service() { loop_.clock().CancelTimer(timer_); }

void Service::Feed() {
  manager_.Notify("WATCHDOG=1");
  timer_ = loop_.clock().CallAt(loop_.SteadyNow() + *watchdog_ / 2, [this] { Feed(); });
}

void Service::Started(const std::string& status) {
  background_.Started();
  manager_.Notify(net::StatusLine(status));
}

void Service::Serving(std::size_t providers) {
  is_serving_ = true;
  manager_.Notify("READY=1\n" + net::StatusLine(fmt::format("Serving; providers: {}", providers)));
}

void Service::Reloading() {
  if (!is_serving_) return;
  // The service manager uses the same clock.
  auto now = std::chrono::duration_cast<std::chrono::microseconds>(loop_.SteadyNow().time_since_epoch());
  manager_.Notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", now.count()));
}

void Service::Refused(const std::string& why) {
  if (!is_serving_) return;
  manager_.Notify(
      "READY=1\n" +
      net::StatusLine("Serving with the previous configuration; the changed one cannot be used: " + why));
}

void Service::Stopping() { manager_.Notify("STOPPING=1\n" + net::StatusLine("Stopping")); }

void Service::EndAtOnce() {
  background_.End();
  std::quick_exit(0);
}

}  // namespace nodepool::daemon
