#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "async/task_group.h"
#include "net/http/http.h"
#include "net/http/open_stream.h"

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
  Duration request_time = std::chrono::seconds(10);  // for sending a request, from its first byte on
  Duration idle_time = std::chrono::seconds(30);     // between requests of a connection
  Duration answer_time = std::chrono::seconds(30);   // for taking an answer, or a piece of a stream
};

// A plain HTTP/1.1 server on the loop. A handler that throws is answered with 500 and
// logged; HEAD is answered as GET without the body. A stream ends with its connection, and the connection
// with its stream.
class HttpServer {
 public:
  using Handler = std::function<Task<HttpResponse>(HttpRequest)>;

  HttpServer(Loop& loop, Handler handler, HttpLimits limits = {});
  ~HttpServer();  // call Stop() first

  // Binds and begins to serve; port 0 selects a free one. Error(kInvalid) says why it cannot listen
  // on an address, e.g. that the port is in use.
  void Listen(const std::string& address, int port);
  int port() const;

  // Closes all connections; ends when no handler runs any more.
  Task<> Stop();

 private:
  using Socket = boost::asio::ip::tcp::socket;

  Task<> Accept();
  Task<> Serve(std::shared_ptr<Socket> socket);
  // Answers requests until the connection ends, or until it is used for a stream.
  Task<std::optional<OpenStream>> Converse(std::shared_ptr<Socket> socket);
  Task<> Stream(std::shared_ptr<Socket> socket, OpenStream stream);
  void EndWithPeer(const std::shared_ptr<Socket>& socket, TaskGroup::TaskId stream);
  Task<HttpResponse> Handle(HttpRequest request);
  Task<HttpResponse> Answer(HttpRequest request);
  bool MakeRoom();

  Loop& loop_;
  Handler handler_;
  HttpLimits limits_;
  log::Logger logger_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::list<std::shared_ptr<Socket>> open_;
  std::list<Socket*> silent_;  // those without a complete request, the longest first
  std::list<std::shared_ptr<Socket>> streaming_;
  std::size_t unsent_bytes_ = 0;
  TaskGroup tasks_;
};

}  // namespace nodepool::net
