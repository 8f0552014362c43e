#include "net/http/response_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/chunk_encode.hpp>

#include "net/http/connection.h"

namespace nodepool::net {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// After each piece the seat notes that the peer goes on.
constexpr std::size_t kPieceOfAnswer = 64 * 1024;

constexpr int kNoContent = 204;
constexpr int kNotModified = 304;

}  // namespace

std::string HeadOf(const HttpResponse& response, const Manner& manner) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, HttpReason(response.status));
  auto add = [&head](std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(head), "{}: {}\r\n", name, value);
  };
  bool has_no_body = response.status == kNoContent || response.status == kNotModified;
  if (!has_no_body) add("Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) add(name, value);
  if (response.stream) {
    if (manner.knows_chunks) add("Transfer-Encoding", "chunked");
  } else if (!has_no_body) {
    add("Content-Length", std::to_string(response.whole_body().size()));
  }
  if (!manner.keeps_alive) {
    add("Connection", "close");
  } else if (!manner.knows_chunks) {
    add("Connection", "keep-alive");  // a client of HTTP/1.0 does not expect it
  }
  return head + "\r\n";
}

// A small answer goes out at once, with TLS as one record.
Task<error_code> WriteResponse(Loop& loop, Connection& connection, Seats::Ptr seat, HttpResponse response,
                               Manner manner) {
  bool is_head_alone = manner.is_head || response.stream || response.status == kNoContent;
  std::string_view rest = is_head_alone ? std::string_view() : response.whole_body();
  std::string first = HeadOf(response, manner);
  first += rest.substr(0, kPieceOfAnswer);
  rest.remove_prefix(std::min(rest.size(), kPieceOfAnswer));
  std::string_view piece = first;
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  while (!piece.empty() && !error) {
    co_await asio::async_write(connection, asio::buffer(piece), token);
    seat->since = loop.SteadyNow();
    piece = rest.substr(0, kPieceOfAnswer);
    rest.remove_prefix(piece.size());
  }
  co_return error;
}

namespace {

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
