#include "main/daemon.h"

#include <boost/asio/signal_set.hpp>
#include <csignal>

namespace nodepool {

Task<> AwaitSignal(Loop& loop, Ending& ending) {
  boost::asio::signal_set signals(loop.context(), SIGINT, SIGTERM, SIGUSR1);
  int signal = co_await signals.async_wait(boost::asio::use_awaitable);
  ending.is_immediate = signal == SIGTERM;
  ending.reached.Set();
}

Task<> AwaitReload(Loop& loop, driver::ConfigFollower& follower) {
  boost::asio::signal_set signals(loop.context(), SIGHUP);
  while (true) {
    co_await signals.async_wait(boost::asio::use_awaitable);
    follower.Reload();
  }
}

}  // namespace nodepool
