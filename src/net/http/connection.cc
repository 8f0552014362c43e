#include "net/http/connection.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace nodepool::net {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// For what is still on its way to the client, and its answer.
constexpr Duration kFarewell = std::chrono::seconds(2);

}  // namespace

asio::ip::address Connection::PeerAddress() const {
  error_code gone;
  asio::ip::address peer = socket_.remote_endpoint(gone).address();
  bool is_mapped = peer.is_v6() && peer.to_v6().is_v4_mapped();
  return is_mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, peer.to_v6()) : peer;
}

void Connection::Close() {
  error_code ignored;
  socket_.close(ignored);
}

Task<error_code> Connection::BeginTls(asio::ssl::context& context) {
  tls_.emplace(socket_, context);
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  co_await tls_->async_handshake(asio::ssl::stream_base::server, token);
  co_return error;
}

Task<> Connection::Finish(Loop& loop) {
  error_code ignored;
  if (tls_) {
    HangUpLater late(loop, socket_, kFarewell);
    co_await tls_->async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
  }
  socket_.shutdown(Socket::shutdown_send, ignored);
}

}  // namespace nodepool::net
