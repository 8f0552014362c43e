#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "async/loop.h"
#include "async/task_group.h"

namespace nodepool::driver::testing {

// A SOCKS5 proxy on this host through which the HTTP client reaches a cloud (RFC 1928: CONNECT without a
// login), so that any cloud can be made silent. While it stalls it forwards nothing; the connections of that
// time are closed when the stall ends, so that nothing of them reaches the cloud later.
class StallingProxy {
 public:
  // Begins to listen. The loop outlives it; call Stop() first.
  explicit StallingProxy(Loop& loop);
  Task<> Stop() { return tasks_.Stop(); }

  // For http_proxy and https_proxy.
  std::string url() const;
  // How many connections it has made.
  int connections() const { return connections_; }
  void Stall(bool is_stalled);

 private:
  using Socket = boost::asio::ip::tcp::socket;
  struct Connection;

  Task<> Accept();
  Task<> Serve(std::shared_ptr<Connection> connection);
  Task<> Connect(Connection& connection);
  Task<> Pump(std::shared_ptr<Connection> connection, Socket& from, Socket& to);

  Loop& loop_;
  boost::asio::ip::tcp::acceptor acceptor_;
  TaskGroup tasks_;
  int connections_ = 0;
  bool is_stalled_ = false;
  int stalls_ = 0;  // that have begun
};

}  // namespace nodepool::driver::testing
