#include "net/http/tls_acceptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <string>
#include <string_view>

#include "base/scope_exit.h"
#include "net/http/http.h"

namespace nodepool::net {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Answers whatever the client has sent with the status and a line of text, in plain HTTP, as far as this is
// possible without waiting, and closes the connection.
// The bytes that the peer has sent are read first, since a close would otherwise discard the answer.
void Refuse(tcp::socket& socket, int status, std::string_view text) {
  std::string answer = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}\n",
      status, HttpReason(status), text.size() + 1, text);
  boost::system::error_code ignored;
  char sent[4096];
  socket.non_blocking(true, ignored);
  socket.read_some(asio::buffer(sent), ignored);
  socket.write_some(asio::buffer(answer), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  socket.close(ignored);
}

}  // namespace

using boost::system::error_code;

namespace {

// Between the beginnings of two handshakes. A handshake costs a signature and some tenths of a millisecond.
constexpr Duration kShortestInterval = std::chrono::milliseconds(1);
constexpr int kSignaturesPerInterval = 4;
constexpr std::size_t kRecordHead = 5;  // type, version and length of a TLS record (RFC 8446, 5.1)
constexpr std::size_t kLongestRecord = kRecordHead + 16384;

// Waits for so many bytes of the client and reads the first ones, which stay unread. False: they do not come.
Task<bool> HasArrived(tcp::socket& socket, std::size_t bytes, asio::mutable_buffer first) {
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  socket.set_option(tcp::socket::receive_low_watermark(static_cast<int>(bytes)), error);
  co_await socket.async_wait(tcp::socket::wait_read, token);
  if (error || socket.available(error) < bytes || error) co_return false;
  socket.receive(first, tcp::socket::message_peek, error);
  co_return !error;
}

std::size_t SizeOfRecord(const std::array<unsigned char, kRecordHead>& head) {
  return std::min(kLongestRecord, kRecordHead + (std::size_t{head[3]} << 8) + head[4]);
}

}  // namespace

TlsAcceptor::TlsAcceptor(Loop& loop, CertificateFiles files, std::string setting, log::Logger logger)
    : loop_(loop),
      logger_(logger),
      certificate_(loop, std::move(files), std::move(setting), logger),
      failures_(loop, [this](std::uint64_t more) {
        logger_.Info("{} more TLS handshakes failed in the last minute; the level DEBUG shows each", more);
      }) {}

Task<bool> TlsAcceptor::Begin(Connection& connection, std::string network) {
  tcp::socket& socket = connection.socket();
  std::array<unsigned char, kRecordHead> head{};
  bool has_come = co_await HasArrived(socket, 1, asio::buffer(head));
  if (!has_come) co_return false;
  if (!IsTlsByte(static_cast<char>(head[0]))) {
    Refuse(socket, 400, "This port speaks HTTPS only: begin the URL with https:// in place of http://");
    co_return false;
  }
  // A client that does not go on takes no turn.
  has_come = co_await HasArrived(socket, kRecordHead, asio::buffer(head));
  if (has_come) has_come = co_await HasArrived(socket, SizeOfRecord(head), asio::buffer(head));
  if (!has_come) co_return false;
  error_code error;
  socket.set_option(tcp::socket::receive_low_watermark(1), error);
  bool has_turn = co_await AwaitTurn(connection, std::move(network));
  if (!has_turn) co_return false;
  error = co_await connection.BeginTls(certificate_.context());
  if (error) ReportFailure(connection, error);
  co_return !error;
}

Task<bool> TlsAcceptor::AwaitTurn(Connection& connection, std::string network) {
  std::shared_ptr<Gate> gate = networks_[network].lock();
  if (!gate) networks_[network] = gate = std::make_shared<Gate>(1);
  ScopeExit left([&] {
    if (gate.use_count() == 1) networks_.erase(network);
  });
  Gate::Pass pass = co_await gate->Enter();
  co_return co_await AwaitTurnOfAll(connection);
}

// False: the connection was closed meanwhile. Its turn takes no time then, so whoever opens connections
// faster than they get turns delays only those that are open.
Task<bool> TlsAcceptor::AwaitTurnOfAll(Connection& connection) {
  Gate::Pass pass = co_await turns_.Enter();
  if (connection.is_open() && loop_.SteadyNow() < next_turn_) co_await loop_.SleepUntil(next_turn_);
  if (!connection.is_open()) co_return false;
  next_turn_ =
      loop_.SteadyNow() + std::max(kShortestInterval, kSignaturesPerInterval * certificate_.signing_time());
  co_return true;
}

void TlsAcceptor::ReportFailure(const Connection& connection, const error_code& error) {
  if (error.category() != asio::error::get_ssl_category()) return;  // it has hung up, or was hung up on
  log::Level level = failures_.Admits() ? log::Level::kInfo : log::Level::kDebug;
  if (logger_.Enabled(level))
    logger_.Write(level, fmt::format("A TLS handshake with {} failed: {}",
                                     connection.PeerAddress().to_string(), error.message()));
}

}  // namespace nodepool::net
