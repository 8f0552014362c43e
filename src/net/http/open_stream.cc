#include "net/http/open_stream.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/chunk_encode.hpp>

#include "net/http/hang_up.h"

namespace nodepool::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

// What the system keeps for a peer that does not read. It would else take megabytes for each, as fast as they
// can be copied.
constexpr int kSendBuffer = 16 * 1024;

template <class Buffers>
Task<bool> IsSent(Loop& loop, Connection& connection, Buffers buffers, Duration answer_time) {
  HangUpLater slow(loop, connection.socket(), answer_time);
  boost::system::error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  co_await asio::async_write(connection, buffers, token);
  co_return !error;
}

Task<bool> IsSent(Loop& loop, Connection& connection, const std::string& piece, bool is_chunked,
                  Duration answer_time) {
  asio::const_buffer content = asio::buffer(piece);
  if (is_chunked) return IsSent(loop, connection, http::make_chunk(content), answer_time);
  return IsSent(loop, connection, content, answer_time);
}

}  // namespace

Task<> SendPieces(Loop& loop, Connection& connection, OpenStream stream, Duration answer_time) {
  boost::system::error_code ignored;
  connection.socket().set_option(tcp::socket::send_buffer_size(kSendBuffer), ignored);
  while (true) {
    std::shared_ptr<const std::string> piece = co_await stream.body->Next();
    if (!piece) break;
    if (piece->empty()) continue;  // an empty chunk would end the body
    bool is_sent = co_await IsSent(loop, connection, *piece, stream.is_chunked, answer_time);
    if (!is_sent) co_return;
    stream.seat->since = loop.SteadyNow();
  }
  if (stream.is_chunked) co_await IsSent(loop, connection, http::make_chunk_last(), answer_time);
  co_await connection.Finish(loop);
}

}  // namespace nodepool::net
