#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "async/log_throttle.h"
#include "async/task_group.h"
#include "net/http/connection.h"
#include "net/http/http.h"
#include "net/http/open_stream.h"
#include "net/http/tls_acceptor.h"

namespace nodepool::net {

// The limits for a peer; beyond them it gets an error, or its connection is closed.
struct HttpLimits {
  std::size_t header_bytes = 16 * 1024;  // 431
  std::size_t body_bytes = 64 * 1024;    // 413
  // For a further one, the connection that has been without a complete request for the longest time
  // is closed; while all of them are being answered, the new one gets 503.
  std::size_t connections = 200;
  std::size_t unsent_bytes = 64 << 20;  // of all large answers together that peers have not read; 503
  std::size_t streams = 2000;           // connections with a BodyStream, beside the others; 503
  int requests_per_connection = 1000;
  // For sending a request, from its first byte on; for a TLS handshake, from the connection on.
  Duration request_time = std::chrono::seconds(10);
  Duration idle_time = std::chrono::seconds(30);    // between requests of a connection
  Duration answer_time = std::chrono::seconds(30);  // for taking an answer, or a piece of a stream
};

// An HTTP/1.1 server on the loop, with TLS if it has a certificate (http-tls.md). A handler that throws is
// answered with 500 and logged; HEAD is answered as GET without the body. A stream ends with its connection,
// and the connection with its stream.
class HttpServer {
 public:
  using Handler = std::function<Task<HttpResponse>(HttpRequest)>;

  HttpServer(Loop& loop, Handler handler, HttpLimits limits = {},
             std::optional<CertificateFiles> certificate = std::nullopt);
  ~HttpServer();  // call Stop() first

  // Loads the certificate, binds and begins to serve; port 0 selects a free one. Error(kInvalid) says why it
  // cannot listen on an address, e.g. that the port is in use, or which file cannot be used.
  void Listen(const std::string& address, int port);
  int port() const;

  // Closes all connections; ends when no handler runs any more.
  Task<> Stop();

 private:
  using ConnectionPtr = std::shared_ptr<Connection>;
  class Silence;

  void Bind(const std::string& address, int port);
  Task<> Accept();
  Task<> Serve(ConnectionPtr connection);
  Task<bool> BeginTls(Connection& connection);
  // Answers requests until the connection ends, or until it is used for a stream.
  Task<std::optional<OpenStream>> Converse(Connection& connection);
  Task<> Stream(ConnectionPtr connection, OpenStream stream);
  Task<> EndWithPeer(ConnectionPtr connection, TaskGroup::TaskId stream);
  void ReportTls(const Connection& connection);
  Task<HttpResponse> Handle(HttpRequest request);
  Task<HttpResponse> Answer(HttpRequest request);
  bool MakeRoom();

  Loop& loop_;
  Handler handler_;
  HttpLimits limits_;
  log::Logger logger_;
  boost::asio::ip::tcp::acceptor acceptor_;
  const std::optional<CertificateFiles> certificate_;
  std::optional<TlsAcceptor> tls_;  // with a certificate, from Listen() on
  LogThrottle tls_reports_;         // of clients that speak TLS to a server without
  std::list<ConnectionPtr> open_;
  std::list<Connection*> silent_;  // those without a complete request, the longest first
  std::list<ConnectionPtr> streaming_;
  std::size_t unsent_bytes_ = 0;
  TaskGroup tasks_;
};

}  // namespace nodepool::net
