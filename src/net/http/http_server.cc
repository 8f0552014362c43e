#include "net/http/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <optional>

#include "async/attempt.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "net/http/framing.h"
#include "net/http/hang_up.h"

namespace nodepool::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Parser = http::request_parser<http::string_body>;

HttpResponse Plain(int status, std::string text = "") {
  HttpResponse response;
  response.status = status;
  response.body = text.empty() ? std::string(HttpReason(status)) : std::move(text);
  return response;
}

// The answer to a request that could not be read; nullopt: just close the connection.
std::optional<HttpResponse> AnswerTo(const boost::system::error_code& error) {
  if (error == http::error::header_limit) return Plain(431);
  if (error == http::error::body_limit) return Plain(413);
  bool is_peer_gone = error == http::error::end_of_stream || error == http::error::partial_message ||
                      error.category() != http::make_error_code(http::error::bad_method).category();
  if (is_peer_gone) return std::nullopt;
  return Plain(400, "Bad Request: " + error.message());
}

std::optional<HttpRequest> Understood(const http::request<http::string_body>& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  if (!ParseTarget(std::string_view(message.target().data(), message.target().size()), request)) {
    return std::nullopt;
  }
  for (const auto& field : message) {
    std::string_view name(field.name_string().data(), field.name_string().size());
    request.headers[Lower(name)] = std::string(field.value());
  }
  request.body = message.body();
  return request;
}

void SetPeer(const tcp::socket& socket, HttpRequest& request) {
  boost::system::error_code error;
  asio::ip::address peer = socket.remote_endpoint(error).address();
  if (error) return;
  if (peer.is_v6() && peer.to_v6().is_v4_mapped()) {
    peer = asio::ip::make_address_v4(asio::ip::v4_mapped, peer.to_v6());
  }
  request.is_from_this_host = peer.is_loopback();
  request.peer = peer.to_string();
}

// What decides how an answer is sent.
struct Manner {
  bool is_head = false;
  bool keeps_alive = false;
  bool knows_chunks = true;
};

http::response<http::string_body> MessageOf(HttpResponse response, const Manner& manner) {
  http::response<http::string_body> message;
  message.version(11);
  message.result(static_cast<unsigned>(response.status));
  message.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) message.set(name, value);
  message.keep_alive(manner.keeps_alive);
  if (response.stream) {
    message.chunked(manner.knows_chunks);
    return message;
  }
  message.content_length(response.body.size());
  if (!manner.is_head) message.body() = std::move(response.body);
  return message;
}

Task<boost::system::error_code> Write(tcp::socket& socket, http::response<http::string_body> message,
                                      bool is_head_only) {
  boost::system::error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  http::response_serializer<http::string_body> serializer(message);
  if (is_head_only) {
    co_await http::async_write_header(socket, serializer, token);
  } else {
    co_await http::async_write(socket, serializer, token);
  }
  co_return error;
}

// Sends as much as is possible without waiting. The bytes that the peer has sent are read first,
// since a close would otherwise discard the answer.
void Refuse(tcp::socket& socket) {
  constexpr std::string_view kBusy =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 21\r\n"
      "Connection: close\r\n\r\nToo many connections\n";
  boost::system::error_code ignored;
  char sent[4096];
  socket.non_blocking(true, ignored);
  socket.read_some(asio::buffer(sent), ignored);
  socket.write_some(asio::buffer(kBusy), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  socket.close(ignored);
}

// Answers up to here do not count as unsent.
constexpr std::size_t kSmallAnswer = 64 * 1024;

}  // namespace

HttpServer::HttpServer(Loop& loop, Handler handler, HttpLimits limits)
    : loop_(loop),
      handler_(std::move(handler)),
      limits_(limits),
      logger_("nodepool.WebApp"),
      acceptor_(loop.context()),
      tasks_(loop, logger_) {}

HttpServer::~HttpServer() = default;

void HttpServer::Listen(const std::string& address, int port) {
  std::string place = fmt::format("{} port {}", address, port);
  boost::system::error_code error;
  asio::ip::address ip = asio::ip::make_address(address, error);
  if (error || port < 0 || port > 65535) {
    throw Error(Verdict::kInvalid,
                fmt::format("the web server cannot listen on {}: listen_address must be an IP "
                            "address and port a number up to 65535",
                            place));
  }
  try {
    tcp::endpoint endpoint(ip, static_cast<std::uint16_t>(port));
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen();
  } catch (const boost::system::system_error& fault) {
    throw Error(Verdict::kInvalid,
                fmt::format("the web server cannot listen on {}: {}; set webapp.port or use --no-webapp",
                            place, fault.code().message()));
  }
  logger_.Info("Serving on http://{}:{}", ip.is_v6() ? "[" + address + "]" : address, this->port());
  tasks_.Spawn("accept web connections", Accept());
}

int HttpServer::port() const { return acceptor_.local_endpoint().port(); }

Task<> HttpServer::Stop() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  for (const auto* sockets : {&open_, &streaming_}) {
    for (const std::shared_ptr<Socket>& socket : *sockets) socket->close(ignored);
  }
  co_await tasks_.Stop();
}

// Returns whether a connection was closed to make one available.
bool HttpServer::MakeRoom() {
  if (silent_.empty()) return false;
  boost::system::error_code ignored;
  silent_.front()->close(ignored);
  silent_.pop_front();
  return true;
}

Task<> HttpServer::Accept() {
  boost::system::error_code reported;
  while (true) {
    auto socket = std::make_shared<Socket>(loop_.context());
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await acceptor_.async_accept(*socket, token);
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) co_return;
    if (error && error != reported) {
      logger_.Warning("Web connections cannot be accepted at present: {}", error.message());
    }
    reported = error;
    if (error) {
      co_await loop_.SleepFor(std::chrono::seconds(1));
      continue;
    }
    if (open_.size() >= limits_.connections && !MakeRoom()) {
      Refuse(*socket);
      continue;
    }
    tasks_.Spawn("web connection", Serve(socket));
  }
}

Task<> HttpServer::Serve(std::shared_ptr<Socket> socket) {
  auto place = open_.insert(open_.end(), socket);
  std::optional<OpenStream> stream;
  ScopeExit leave([&] {
    boost::system::error_code ignored;
    if (!stream) socket->close(ignored);
    open_.erase(place);
  });
  stream = co_await Converse(socket);
  if (!stream) co_return;
  TaskGroup::TaskId id = tasks_.Spawn("web stream", Stream(socket, *stream));
  EndWithPeer(socket, id);
}

Task<> HttpServer::Stream(std::shared_ptr<Socket> socket, OpenStream stream) {
  auto place = streaming_.insert(streaming_.end(), socket);
  ScopeExit leave([&] {
    boost::system::error_code ignored;
    socket->close(ignored);
    streaming_.erase(place);
  });
  co_await SendPieces(loop_, *socket, std::move(stream), limits_.answer_time);
}

// A peer that listens to a stream sends nothing more; what comes is its end.
void HttpServer::EndWithPeer(const std::shared_ptr<Socket>& socket, TaskGroup::TaskId stream) {
  auto byte = std::make_shared<char>();
  // The stream's task holds the socket, and this server the task.
  auto end = [this, stream, byte, streaming = std::weak_ptr(socket)](auto, std::size_t) {
    if (!streaming.expired()) tasks_.Cancel(stream);
  };
  socket->async_read_some(asio::buffer(byte.get(), 1), std::move(end));
}

Task<std::optional<OpenStream>> HttpServer::Converse(std::shared_ptr<Socket> socket) {
  boost::beast::flat_buffer buffer(limits_.header_bytes + limits_.body_bytes);
  for (int served = 1; socket->is_open(); ++served) {
    Parser parser;
    parser.header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
    parser.body_limit(limits_.body_bytes);
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    {
      silent_.push_back(socket.get());
      ScopeExit heard([&] { silent_.remove(socket.get()); });
      if (buffer.size() == 0 && served > 1) {
        HangUpLater idle(loop_, *socket, limits_.idle_time);
        co_await socket->async_wait(tcp::socket::wait_read, token);
        if (error) co_return std::nullopt;
      }
      HangUpLater slow(loop_, *socket, limits_.request_time);
      co_await http::async_read(*socket, buffer, parser, token);
    }
    HttpResponse response;
    Manner manner;
    if (error) {
      std::optional<HttpResponse> answer = AnswerTo(error);
      if (!answer) co_return std::nullopt;
      response = std::move(*answer);
    } else if (std::optional<std::string_view> fault = FramingFault(parser.get())) {
      response = Plain(400, fmt::format("Bad Request: {}", *fault));
    } else {
      manner.is_head = parser.get().method() == http::verb::head;
      manner.knows_chunks = parser.get().version() >= 11;
      manner.keeps_alive = parser.get().keep_alive() && served < limits_.requests_per_connection;
      std::optional<HttpRequest> request = Understood(parser.get());
      if (request) {
        SetPeer(*socket, *request);
        response = co_await Answer(std::move(*request));
      } else {
        response = Plain(400, "Bad Request: the target is not a path");
      }
    }
    if (response.stream && streaming_.size() >= limits_.streams) {
      response = Plain(503, "There are too many streams; try again later");
    }
    bool is_large = !manner.is_head && response.body.size() > kSmallAnswer;
    if (is_large && unsent_bytes_ + response.body.size() > limits_.unsent_bytes) {
      bool is_too_large = response.body.size() > limits_.unsent_bytes;
      response = Plain(503, is_too_large ? "The answer is too large; ask for less"
                                         : "Others do not take their answers; try again");
      is_large = false;
    }
    std::size_t unsent = is_large ? response.body.size() : 0;
    unsent_bytes_ += unsent;
    ScopeExit sent([&] { unsent_bytes_ -= unsent; });
    OpenStream stream{manner.is_head ? nullptr : response.stream, manner.knows_chunks};
    if (stream.body) manner.keeps_alive = false;
    http::response<http::string_body> message = MessageOf(std::move(response), manner);
    HangUpLater slow(loop_, *socket, limits_.answer_time);
    boost::system::error_code failed =
        co_await Write(*socket, std::move(message), manner.is_head || stream.body);
    if (failed) co_return std::nullopt;
    if (stream.body) co_return stream;
    if (!manner.keeps_alive) {
      socket->shutdown(tcp::socket::shutdown_send, failed);
      co_return std::nullopt;
    }
  }
  co_return std::nullopt;
}

// A coroutine, so that an exception of the handler before it returns a task fails it, too.
Task<HttpResponse> HttpServer::Handle(HttpRequest request) {
  HttpResponse response = co_await handler_(std::move(request));
  co_return response;
}

Task<HttpResponse> HttpServer::Answer(HttpRequest request) {
  std::string path = request.path;
  Outcome<HttpResponse> response = co_await Attempt(Handle(std::move(request)));
  if (response) co_return std::move(*response);
  logger_.Error("{} could not be answered: {}", Excerpt(path), response.error().message());
  co_return Plain(500);
}

}  // namespace nodepool::net
