#include "net/http/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "net/http/connection.h"

namespace nodepool::net {

namespace {

namespace http = boost::beast::http;

// Why it is unsure where the request ends or for which host it is, so that a proxy in front of the server may
// have understood it differently (RFC 9112, 3.2 and 6.3); nullopt where both are clear.
std::optional<std::string_view> FramingFault(const http::header<true, http::fields>& request) {
  constexpr unsigned kHttp11 = 11;
  std::size_t hosts = request.count(http::field::host);
  if (hosts > 1) return "it has several Host headers";
  if (hosts == 0 && request.version() >= kHttp11) return "it has no Host header";
  std::size_t codings = request.count(http::field::transfer_encoding);
  bool is_chunked = boost::beast::iequals(request[http::field::transfer_encoding], "chunked");
  if (codings > 1 || (codings == 1 && !is_chunked)) return "its Transfer-Encoding is not chunked alone";
  // Of several, or a list, others may take another: 010 is not 10 for all.
  bool is_number =
      request[http::field::content_length].find_first_not_of("0123456789") == std::string_view::npos;
  if (request.count(http::field::content_length) > 1 || !is_number)
    return "its Content-Length is not one number";
  return std::nullopt;
}

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kFirstRead = 4 * 1024;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kLineEnd = "\r\n";
constexpr unsigned kHttp11 = 11;

HttpResponse BadRequest(std::string_view fault) {
  return PlainResponse(400, fmt::format("Bad Request: {}", fault));
}

// The answer to a request that could not be read; nullopt: just close the connection.
std::optional<HttpResponse> AnswerTo(const error_code& error) {
  if (error == http::error::header_limit) return PlainResponse(431);
  if (error == http::error::body_limit) return PlainResponse(413);
  bool is_peer_gone = error == http::error::end_of_stream || error == http::error::partial_message ||
                      error.category() != http::make_error_code(http::error::bad_method).category();
  if (is_peer_gone) return std::nullopt;
  return BadRequest(error.message());
}

std::optional<HttpRequest> Understood(const http::request<http::string_body>& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  for (const auto& field : message) {
    std::string_view name(field.name_string().data(), field.name_string().size());
    request.headers[Lower(name)] = std::string(field.value());
  }
  std::string_view target(message.target().data(), message.target().size());
  if (!ParseTarget(target, request)) return std::nullopt;
  request.body = message.body();
  return request;
}

// Whether the peer sends the body only when it is asked to (RFC 9110, 10.1.1).
bool AwaitsConsent(const http::request<http::string_body>& message) {
  return message.version() >= kHttp11 && boost::beast::iequals(message[http::field::expect], "100-continue");
}

}  // namespace

RequestReader::RequestReader(Loop& loop, Connection& connection, const HttpLimits& limits)
    : loop_(loop),
      connection_(connection),
      limits_(limits),
      buffer_(limits.header_bytes + limits.body_bytes) {}

// Waits for the first byte. Empty lines before a request are skipped (RFC 9112, 2.2).
Task<bool> RequestReader::HasBegun() {
  HangUpLater idle(loop_, connection_.socket(), read_ > 1 ? limits_.idle_time : limits_.request_time);
  while (true) {
    std::string_view bytes(static_cast<const char*>(buffer_.data().data()), buffer_.size());
    while (bytes.starts_with(kLineEnd)) bytes.remove_prefix(kLineEnd.size());
    buffer_.consume(buffer_.size() - bytes.size());
    bool may_be_empty_line = kLineEnd.starts_with(bytes);
    if (!may_be_empty_line) co_return true;
    error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    auto space = buffer_.prepare(std::min(kFirstRead, buffer_.max_size() - buffer_.size()));
    std::size_t size = co_await connection_.async_read_some(space, token);
    if (error) co_return false;
    buffer_.commit(size);
  }
}

Task<error_code> RequestReader::ReadHead(Parser& parser) {
  parser.header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
  parser.body_limit(limits_.body_bytes);
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  co_await http::async_read_header(connection_, buffer_, parser, token);
  co_return error;
}

Task<error_code> RequestReader::ReadBody(Parser& parser) {
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  if (parser.is_done()) co_return error;
  if (AwaitsConsent(parser.get())) {
    co_await asio::async_write(connection_, asio::buffer(kContinue), token);
    if (error) co_return error;
  }
  co_await http::async_read(connection_, buffer_, parser, token);
  co_return error;
}

Task<Received> RequestReader::Next() {
  ++read_;
  Received received;
  bool has_begun = co_await HasBegun();
  if (!has_begun) co_return received;
  bool may_be_tls = read_ == 1 && IsTlsByte(*static_cast<const char*>(buffer_.data().data()));
  // From its first byte on a request has a deadline of its own; before that the connection was only idle.
  HangUpLater slow(loop_, connection_.socket(), limits_.request_time);
  Parser parser;
  error_code error = co_await ReadHead(parser);
  std::optional<std::string_view> fault;
  if (!error) fault = FramingFault(parser.get());
  if (!error && !fault) error = co_await ReadBody(parser);
  if (error) {
    received.refusal = AnswerTo(error);
    received.speaks_tls = may_be_tls && received.refusal;
  } else if (fault) {
    received.refusal = BadRequest(*fault);
  } else {
    received.manner.is_head = parser.get().method() == http::verb::head;
    received.manner.knows_chunks = parser.get().version() >= kHttp11;
    received.manner.keeps_alive = parser.get().keep_alive() && read_ < limits_.requests_per_connection;
    received.request = Understood(parser.get());
    if (!received.request) received.refusal = BadRequest("the target is not a path");
  }
  co_return received;
}

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
