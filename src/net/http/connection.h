#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <optional>
#include <utility>

#include "async/loop.h"

namespace nodepool::net {

// A client's connection to a server, plain or with TLS: a stream as Asio's and Beast's operations expect it.
// It must outlive the operations in progress; with TLS one may read while another one writes.
class Connection {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;

  explicit Connection(Loop& loop) : socket_(loop.context()) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }
  Socket& socket() { return socket_; }
  // The client's, also if it came through IPv6; the unspecified one if it has gone.
  boost::asio::ip::address PeerAddress() const;
  bool is_open() const { return socket_.is_open(); }
  // Ends every operation in progress.
  void Close();

  // The server's part of the handshake; from then on everything is encrypted. `context` may be replaced
  // meanwhile and afterwards.
  Task<boost::system::error_code> BeginTls(boost::asio::ssl::context& context);

  // Announces that nothing more is sent. With TLS it waits a moment for the client's announcement.
  Task<> Finish(Loop& loop);

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Token>(token));
    return socket_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Token>(token));
    return socket_.async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  Socket socket_;
  // Beast's, which sends a head and its body as one record.
  std::optional<boost::beast::ssl_stream<Socket&>> tls_;
};

// While it lives, a deadline for all operations on the socket: when it passes, the socket is
// closed, which ends every operation in progress.
class HangUpLater {
 public:
  HangUpLater(Loop& loop, boost::asio::ip::tcp::socket& socket, Duration limit)
      : loop_(loop), timer_(loop.clock().CallAt(loop.SteadyNow() + limit, [&socket] {
          boost::system::error_code ignored;
          socket.close(ignored);
        })) {}
  ~HangUpLater() { loop_.clock().CancelTimer(timer_); }
  HangUpLater(const HangUpLater&) = delete;
  HangUpLater& operator=(const HangUpLater&) = delete;

 private:
  Loop& loop_;
  Clock::TimerId timer_;
};

}  // namespace nodepool::net
