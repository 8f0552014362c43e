// The embedded server as a separate program, for tests that stop, pause and kill it and for
// benchmarks: embedded_zookeeper <port> [name=value ...], see Parse.
#include <fmt/format.h>

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <iostream>
#include <map>
#include <string>

#include "async/task.h"
#include "base/error.h"
#include "zk/server/server.h"

namespace nodepool::zk::server {
namespace {

ServerOptions Parse(int argc, char** argv) {
  std::map<std::string, std::string> values;
  for (int i = 2; i < argc; ++i) {
    std::string word = argv[i];
    std::size_t sign = word.find('=');
    if (sign == std::string::npos) throw Error(Verdict::kInvalid, "not name=value: " + word);
    values[word.substr(0, sign)] = word.substr(sign + 1);
  }
  ServerOptions options;
  auto milliseconds = [](const std::string& text) { return std::chrono::milliseconds(std::stoi(text)); };
  options.port = std::stoi(argv[1]);
  for (const auto& [name, value] : values) {
    if (name == "address") options.address = value;
    if (name == "journal") options.journal = value;
    if (name == "min-session-timeout") options.min_session_timeout = milliseconds(value);
    if (name == "container-check") options.container_check = milliseconds(value);
    if (name == "tree-bytes") options.limits.tree_bytes = std::stoull(value);
    if (name == "connections") options.connections = std::stoull(value);
    if (name == "tls-port") options.tls_port = std::stoi(value);
  }
  if (values.contains("cert")) options.tls = TlsFiles{values["cert"], values["key"], values["ca"]};
  return options;
}

Task<> ServeUntilSignal(Loop& loop, Server& server) {
  boost::asio::signal_set signals(loop.context(), SIGINT, SIGTERM);
  co_await server.Start();
  std::cout << "serving on port " << server.port() << std::endl;
  co_await signals.async_wait(boost::asio::use_awaitable);
}

Task<> Serve(Loop& loop, ServerOptions options) {
  BlockingPool pool(1);
  Server server(loop, pool, std::move(options));
  co_await WithCleanup(ServeUntilSignal(loop, server), [&server] { return server.Stop(); });
}

}  // namespace
}  // namespace nodepool::zk::server

int main(int argc, char** argv) {
  using namespace nodepool;
  std::signal(SIGPIPE, SIG_IGN);
  try {
    if (argc < 2) throw Error(Verdict::kInvalid, "usage: embedded_zookeeper <port> [name=value ...]");
    Loop loop;
    RunToEnd(loop, zk::server::Serve(loop, zk::server::Parse(argc, argv)));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "embedded_zookeeper: " << error.what() << std::endl;
    return 1;
  }
}
