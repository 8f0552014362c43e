#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "async/backoff.h"
#include "async/task_group.h"
#include "net/http/connection.h"
#include "net/http/exchange.h"
#include "net/http/http.h"

namespace nodepool::net {

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

  void Bind(const std::string& address, int port);
  Task<> Accept();
  void Admit(ConnectionPtr connection);
  Task<> Serve(ConnectionPtr connection, Seats::Ptr seat);
  Task<bool> BeginTls(Connection& connection, const Seat& seat);
  // Answers requests until the connection ends, or until it is used for a stream.
  Task<std::optional<OpenStream>> Converse(Connection& connection, Seats::Ptr seat);
  Task<HttpResponse> Answer(HttpRequest request, const Connection& connection, Seats::Ptr seat);
  Task<HttpResponse> Handle(HttpRequest request);
  // The response, or what is sent in its place while there is no space for it.
  HttpResponse Fitting(HttpResponse response, bool is_head, Seat& seat);
  Task<> Stream(ConnectionPtr connection, OpenStream stream);
  Task<> EndWithPeer(ConnectionPtr connection, TaskGroup::TaskId stream);
  void ReportTls(const Connection& connection);

  Loop& loop_;
  Handler handler_;
  HttpLimits limits_;
  log::Logger logger_;
  boost::asio::ip::tcp::acceptor acceptor_;
  const std::optional<CertificateFiles> certificate_;
  std::optional<TlsAcceptor> tls_;  // with a certificate, from Listen() on
  LogThrottle tls_reports_;         // of clients that speak TLS to a server without
  Seats seats_;
  Seats stream_seats_;
  TaskGroup tasks_;
};

}  // namespace nodepool::net
