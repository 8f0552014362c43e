#include "net/http_get.h"

#include <fmt/format.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "async/deadline.h"
#include "base/error.h"
#include "net/hang_up.h"
#include "net/resolve.h"

namespace nodepool::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

void Check(const boost::system::error_code& error, const std::string& place) {
  if (error) throw Error(Verdict::kRetry, fmt::format("{}: {}", place, error.message()));
}

}  // namespace

Task<HttpResponse> HttpGet(Loop& loop, std::string host, int port, std::string target, Duration limit,
                           std::size_t max_bytes) {
  std::string place = fmt::format("{} port {}", host, port);
  SteadyTime deadline = loop.SteadyNow() + limit;
  asio::ip::address address = co_await WithDeadline(loop, deadline, "resolving " + host, Resolve(host));
  tcp::socket socket(loop.context());
  HangUpLater late(loop, socket, deadline - loop.SteadyNow());
  boost::system::error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  tcp::endpoint endpoint(address, static_cast<std::uint16_t>(port));
  co_await socket.async_connect(endpoint, token);
  Check(error, place);
  http::request<http::empty_body> message(http::verb::get, target, 11);
  message.set(http::field::host, fmt::format("{}:{}", host, port));
  message.set(http::field::accept, "application/json");
  message.keep_alive(false);
  co_await http::async_write(socket, message, token);
  Check(error, place);
  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(max_bytes);
  co_await http::async_read(socket, buffer, parser, token);
  Check(error, place);
  HttpResponse response;
  response.status = parser.get().result_int();
  response.content_type = std::string(parser.get()[http::field::content_type]);
  response.body = std::move(parser.get().body());
  co_return response;
}

}  // namespace nodepool::net
