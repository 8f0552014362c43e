#include "main/daemon.h"

#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "base/log_setup.h"
#include "config/log_file.h"

namespace nodepool {

void SetUpLogging(const cli::DaemonOptions& options) {
  if (options.logging_path) {
    Expected<log::Setup> setup = config::ReadLogFile(*options.logging_path);
    if (!setup) throw setup.error();
    log::Apply(*setup);
    return;
  }
  log::ToStdout();
  log::SetLevel("nodepool", options.is_debug ? log::Level::kDebug : log::Level::kInfo);
}

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
    log::ReopenFiles();
    follower.Reload();
  }
}

}  // namespace nodepool
