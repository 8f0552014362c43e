#include "net/http/response_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

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

}  // namespace nodepool::net
