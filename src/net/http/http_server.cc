#include "net/http/http_server.h"

#include <fmt/format.h>
#include <netinet/tcp.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "async/task.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "net/http/connection.h"
#include "net/http/exchange.h"

namespace nodepool::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Answers up to here do not count as unsent.
constexpr std::size_t kSmallAnswer = 64 * 1024;

// The system would else take megabytes of answers for each peer that reads nothing, as fast as they can be
// copied. Beside these are those on their way, so fast peers get as much at a time as before.
void LimitUnsentInSystem(tcp::socket& socket) {
  constexpr int kUnsentBytes = 128 * 1024;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof(kUnsentBytes));
}

}  // namespace

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
      seats_({.strangers = limits.connections,
              .proven = limits.proven_connections,
              .held_bytes = limits.unsent_bytes,
              .fair_share = limits.connections / 10}),
      stream_seats_({.strangers = limits.streams, .proven = limits.proven_streams, .replaces_own = false}),
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
  seats_.Clear();
  stream_seats_.Clear();
  co_await tasks_.Stop();
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
    Admit(std::move(connection));
  }
}

// Who is sent away is cancelled, too, so that a request of its that waits holds nothing any more.
void HttpServer::Admit(ConnectionPtr connection) {
  std::string network = NetworkOf(connection->PeerAddress().to_string());
  Seats::Ptr seat = seats_.Enter(std::move(network), "", loop_.SteadyNow());
  LimitUnsentInSystem(connection->socket());
  std::weak_ptr<Seat> its = seat;
  TaskGroup::TaskId id = tasks_.Spawn("web connection", Serve(connection, std::move(seat)));
  Seats::Ptr served = its.lock();
  if (!served) return;
  served->leave = [this, connection = std::weak_ptr(connection), id] {
    if (ConnectionPtr open = connection.lock()) open->Close();
    tasks_.Cancel(id);
  };
}

Task<> HttpServer::Serve(ConnectionPtr connection, Seats::Ptr seat) {
  std::optional<OpenStream> stream;
  ScopeExit leave([&] {
    if (!stream) connection->Close();
  });
  bool is_usable = true;
  if (tls_) is_usable = co_await BeginTls(*connection, *seat);
  if (is_usable) stream = co_await Converse(*connection, seat);
  if (!stream) co_return;
  std::weak_ptr<Seat> its = stream->seat;
  TaskGroup::TaskId id = tasks_.Spawn("web stream", Stream(connection, std::move(*stream)));
  tasks_.Spawn("end of a web stream's client", EndWithPeer(connection, id));
  if (Seats::Ptr streaming = its.lock()) streaming->leave = [this, id] { tasks_.Cancel(id); };
}

Task<bool> HttpServer::BeginTls(Connection& connection, const Seat& seat) {
  HangUpLater slow(loop_, connection.socket(), limits_.request_time);
  co_return co_await tls_->Begin(connection, seat.network);
}

Task<> HttpServer::Stream(ConnectionPtr connection, OpenStream stream) {
  ScopeExit leave([&] { connection->Close(); });
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

Task<std::optional<OpenStream>> HttpServer::Converse(Connection& connection, Seats::Ptr seat) {
  RequestReader reader(loop_, connection, limits_);
  while (connection.is_open()) {
    // A connection that does nothing is the first to be closed for another one (http.md 2.1).
    seat->awaits_peer = true;
    Received received = co_await reader.Next();
    if (received.speaks_tls && !tls_) ReportTls(connection);
    HttpResponse response;
    if (received.request) {
      response = co_await Answer(std::move(*received.request), connection, seat);
    } else if (received.refusal) {
      response = std::move(*received.refusal);
    } else {
      break;
    }
    Manner manner = received.manner;
    OpenStream stream{manner.is_head ? nullptr : response.stream, nullptr, manner.knows_chunks};
    if (stream.body) {
      manner.keeps_alive = false;
      // While nothing is sent, so that a refusal can still have its status.
      stream.seat = stream_seats_.Enter(seat->network, seat->proven_as, loop_.SteadyNow());
      if (!stream.seat) stream.body = response.stream = nullptr;
      if (!stream.seat) response = PlainResponse(503, "There are too many streams; try again later");
    }
    response = Fitting(std::move(response), manner.is_head, *seat);
    HangUpLater slow(loop_, connection.socket(), limits_.answer_time);
    boost::system::error_code failed =
        co_await WriteResponse(loop_, connection, seat, std::move(response), manner);
    seats_.Release(*seat);
    if (failed) break;
    if (stream.body) co_return stream;
    if (!manner.keeps_alive) {
      co_await connection.Finish(loop_);
      break;
    }
  }
  co_return std::nullopt;
}

Task<HttpResponse> HttpServer::Answer(HttpRequest request, const Connection& connection, Seats::Ptr seat) {
  asio::ip::address peer = connection.PeerAddress();
  request.is_from_this_host = peer.is_loopback();
  request.peer = peer.to_string();
  request.prove = [this, its = std::weak_ptr(seat)](const std::string& name) {
    if (Seats::Ptr proving = its.lock()) seats_.Prove(*proving, name);
  };
  seat->since = loop_.SteadyNow();
  seat->awaits_peer = false;
  ScopeExit answered([&] { seat->awaits_peer = true; });
  std::string path = request.path;
  Outcome<HttpResponse> response = co_await Attempt(Handle(std::move(request)));
  if (response) co_return std::move(*response);
  logger_.Error("{} could not be answered: {}", Excerpt(path), response.error().message());
  co_return PlainResponse(500);
}

HttpResponse HttpServer::Fitting(HttpResponse response, bool is_head, Seat& seat) {
  std::size_t size = is_head ? 0 : response.whole_body().size();
  if (size <= kSmallAnswer || seats_.Hold(seat, size, loop_.SteadyNow())) return response;
  return PlainResponse(503, size > limits_.unsent_bytes ? "The answer is too large; ask for less"
                                                        : "Others do not take their answers; try again");
}

// A coroutine, so that an exception of the handler before it returns a task fails it, too.
Task<HttpResponse> HttpServer::Handle(HttpRequest request) {
  HttpResponse response = co_await handler_(std::move(request));
  co_return response;
}

}  // namespace nodepool::net
