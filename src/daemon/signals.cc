#include "daemon/signals.h"

#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "base/log/log_setup.h"

namespace nodepool::daemon {

void PrepareSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  debug::StackDump::BlockSignal();
}

Task<> AwaitSignal(Runtime& runtime, Ending& ending) {
  boost::asio::signal_set signals(runtime.loop.context(), SIGINT, SIGTERM, SIGUSR1);
  int signal = co_await signals.async_wait(boost::asio::use_awaitable);
  runtime.service.Stopping();
  ending.is_immediate = signal == SIGTERM;
  ending.reached.Set();
}

Task<> AwaitReload(Runtime& runtime) {
  boost::asio::signal_set signals(runtime.loop.context(), SIGHUP);
  while (true) {
    co_await signals.async_wait(boost::asio::use_awaitable);
    runtime.service.Reloading();
    log::ReopenFiles();
    runtime.follower.Reload();
  }
}

}  // namespace nodepool::daemon
