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
#include "net/http/refusal.h"

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

void SetPeer(const Connection& connection, HttpRequest& request) {
  asio::ip::address peer = connection.PeerAddress();
  request.is_from_this_host = peer.is_loopback();
  request.peer = peer.to_string();
}

// What decides how an answer is sent.
struct Manner {
  bool is_head = false;
  bool keeps_alive = false;
  bool knows_chunks = true;
};

// The body stays with the response.
using Message = http::response<http::span_body<const char>>;

Message MessageOf(const HttpResponse& response, const Manner& manner) {
  Message message;
  message.version(11);
  message.result(static_cast<unsigned>(response.status));
  message.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) message.set(name, value);
  message.keep_alive(manner.keeps_alive);
  if (response.stream) {
    message.chunked(manner.knows_chunks);
    return message;
  }
  const std::string& body = response.whole_body();
  message.content_length(body.size());
  if (!manner.is_head) message.body() = {body.data(), body.size()};
  return message;
}

// Of a response with a stream only the header. Releases the response.
Task<boost::system::error_code> Write(Connection& connection, HttpResponse response, Manner manner) {
  boost::system::error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  Message message = MessageOf(response, manner);
  http::response_serializer<Message::body_type> serializer(message);
  if (manner.is_head || response.stream) {
    co_await http::async_write_header(connection, serializer, token);
  } else {
    co_await http::async_write(connection, serializer, token);
  }
  co_return error;
}

bool BeginsWithTls(const boost::beast::flat_buffer& buffer) {
  return buffer.size() > 0 && IsTlsByte(*static_cast<const char*>(buffer.data().data()));
}

// Answers up to here do not count as unsent.
constexpr std::size_t kSmallAnswer = 64 * 1024;
// Space for the first bytes of a further request of a connection.
constexpr std::size_t kFirstRead = 4 * 1024;

}  // namespace

// Counts a connection among those without a complete request for the duration of a scope.
class HttpServer::Silence {
 public:
  Silence(HttpServer& server, Connection& connection) : server_(server), connection_(connection) {
    server.silent_.push_back(&connection);
  }
  ~Silence() { server_.silent_.remove(&connection_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  HttpServer& server_;
  Connection& connection_;
};

HttpServer::HttpServer(Loop& loop, Handler handler, HttpLimits limits,
                       std::optional<CertificateFiles> certificate)
    : loop_(loop),
      handler_(std::move(handler)),
      limits_(limits),
      logger_("nodepool.WebApp"),
      acceptor_(loop.context()),
      certificate_(std::move(certificate)),
      tls_reports_(loop,
                   [this](std::uint64_t more) {
                     logger_.Warning("{} more connections with TLS were refused in the last minute", more);
                   }),
      tasks_(loop, logger_) {}

HttpServer::~HttpServer() = default;

void HttpServer::Listen(const std::string& address, int port) {
  if (certificate_) tls_.emplace(loop_, *certificate_, "webapp.tls", logger_);
  Bind(address, port);
  bool is_v6 = acceptor_.local_endpoint().address().is_v6();
  logger_.Info("Serving on {}://{}:{}", tls_ ? "https" : "http", is_v6 ? "[" + address + "]" : address,
               this->port());
  if (tls_) tasks_.Spawn("follow the web server's certificate", tls_->Follow());
  tasks_.Spawn("accept web connections", Accept());
}

void HttpServer::Bind(const std::string& address, int port) {
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
}

int HttpServer::port() const { return acceptor_.local_endpoint().port(); }

Task<> HttpServer::Stop() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  for (const auto* connections : {&open_, &streaming_}) {
    for (const ConnectionPtr& connection : *connections) connection->Close();
  }
  co_await tasks_.Stop();
}

// Returns whether a connection was closed to make one available.
bool HttpServer::MakeRoom() {
  if (silent_.empty()) return false;
  silent_.front()->Close();
  silent_.pop_front();
  return true;
}

Task<> HttpServer::Accept() {
  boost::system::error_code reported;
  while (true) {
    auto connection = std::make_shared<Connection>(loop_);
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await acceptor_.async_accept(connection->socket(), token);
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
      if (!tls_) Refuse(connection->socket(), 503, "Too many connections");
      continue;
    }
    tasks_.Spawn("web connection", Serve(connection));
  }
}

Task<> HttpServer::Serve(ConnectionPtr connection) {
  auto place = open_.insert(open_.end(), connection);
  std::optional<OpenStream> stream;
  ScopeExit leave([&] {
    if (!stream) connection->Close();
    open_.erase(place);
  });
  bool is_usable = true;
  if (tls_) is_usable = co_await BeginTls(*connection);
  if (is_usable) stream = co_await Converse(*connection);
  if (!stream) co_return;
  TaskGroup::TaskId id = tasks_.Spawn("web stream", Stream(connection, *stream));
  tasks_.Spawn("end of a web stream's client", EndWithPeer(connection, id));
}

Task<bool> HttpServer::BeginTls(Connection& connection) {
  Silence silence(*this, connection);
  HangUpLater slow(loop_, connection.socket(), limits_.request_time);
  co_return co_await tls_->Begin(connection);
}

Task<> HttpServer::Stream(ConnectionPtr connection, OpenStream stream) {
  auto place = streaming_.insert(streaming_.end(), connection);
  ScopeExit leave([&] {
    connection->Close();
    streaming_.erase(place);
  });
  co_await SendPieces(loop_, *connection, std::move(stream), limits_.answer_time);
}

// A peer that listens to a stream sends nothing more; what comes is its end.
Task<> HttpServer::EndWithPeer(ConnectionPtr connection, TaskGroup::TaskId stream) {
  char byte = 0;
  boost::system::error_code ended;
  auto token = asio::redirect_error(asio::use_awaitable, ended);
  co_await connection->async_read_some(asio::buffer(&byte, 1), token);
  tasks_.Cancel(stream);
}

// Not the client's fault alone: an operator may have given out a wrong URL.
void HttpServer::ReportTls(const Connection& connection) {
  log::Level level = tls_reports_.Admits() ? log::Level::kWarning : log::Level::kDebug;
  if (!logger_.Enabled(level)) return;
  logger_.Write(level, fmt::format("{} speaks TLS to the web server, which serves plain HTTP: use a URL with "
                                   "http://, or set webapp.tls",
                                   connection.PeerAddress().to_string()));
}

Task<std::optional<OpenStream>> HttpServer::Converse(Connection& connection) {
  boost::beast::flat_buffer buffer(limits_.header_bytes + limits_.body_bytes);
  for (int served = 1; connection.is_open(); ++served) {
    Parser parser;
    parser.header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
    parser.body_limit(limits_.body_bytes);
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    {
      Silence silence(*this, connection);
      if (buffer.size() == 0 && served > 1) {
        HangUpLater idle(loop_, connection.socket(), limits_.idle_time);
        auto space = buffer.prepare(kFirstRead);
        std::size_t size = co_await connection.async_read_some(space, token);
        if (error) co_return std::nullopt;
        buffer.commit(size);
      }
      HangUpLater slow(loop_, connection.socket(), limits_.request_time);
      co_await http::async_read(connection, buffer, parser, token);
    }
    HttpResponse response;
    Manner manner;
    if (error) {
      std::optional<HttpResponse> answer = AnswerTo(error);
      if (!answer) co_return std::nullopt;
      if (!tls_ && served == 1 && BeginsWithTls(buffer)) ReportTls(connection);
      response = std::move(*answer);
    } else if (std::optional<std::string_view> fault = FramingFault(parser.get())) {
      response = Plain(400, fmt::format("Bad Request: {}", *fault));
    } else {
      manner.is_head = parser.get().method() == http::verb::head;
      manner.knows_chunks = parser.get().version() >= 11;
      manner.keeps_alive = parser.get().keep_alive() && served < limits_.requests_per_connection;
      std::optional<HttpRequest> request = Understood(parser.get());
      if (request) {
        SetPeer(connection, *request);
        response = co_await Answer(std::move(*request));
      } else {
        response = Plain(400, "Bad Request: the target is not a path");
      }
    }
    if (response.stream && streaming_.size() >= limits_.streams) {
      response = Plain(503, "There are too many streams; try again later");
    }
    std::size_t size = manner.is_head ? 0 : response.whole_body().size();
    bool is_large = size > kSmallAnswer;
    if (is_large && unsent_bytes_ + size > limits_.unsent_bytes) {
      bool is_too_large = size > limits_.unsent_bytes;
      response = Plain(503, is_too_large ? "The answer is too large; ask for less"
                                         : "Others do not take their answers; try again");
      is_large = false;
    }
    std::size_t unsent = is_large ? size : 0;
    unsent_bytes_ += unsent;
    ScopeExit sent([&] { unsent_bytes_ -= unsent; });
    OpenStream stream{manner.is_head ? nullptr : response.stream, manner.knows_chunks};
    if (stream.body) manner.keeps_alive = false;
    HangUpLater slow(loop_, connection.socket(), limits_.answer_time);
    boost::system::error_code failed = co_await Write(connection, std::move(response), manner);
    if (failed) co_return std::nullopt;
    if (stream.body) co_return stream;
    if (!manner.keeps_alive) {
      Silence silence(*this, connection);
      co_await connection.Finish(loop_);
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
