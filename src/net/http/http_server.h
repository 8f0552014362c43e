#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "async/task_group.h"
#include "net/http/http.h"

namespace nodepool::net {

// What a peer may ask of the server; beyond it gets an error or is hung up on.
struct HttpLimits {
  std::size_t header_bytes = 16 * 1024;  // 431
  std::size_t body_bytes = 64 * 1024;    // 413
  // For one more, whoever has been without a whole request for longest is hung up on; while
  // all of them are being answered it gets 503.
  std::size_t connections = 200;
  std::size_t unsent_bytes = 64 << 20;  // of large answers together that peers do not take; 503
  int requests_per_connection = 1000;
  Duration request_time = std::chrono::seconds(10);  // for sending a request, from its first byte on
  Duration idle_time = std::chrono::seconds(30);     // between requests of a connection
  Duration answer_time = std::chrono::seconds(30);   // for taking an answer
};

// A plain HTTP/1.1 server on the loop. A handler that throws is answered with 500 and
// logged; HEAD is answered as GET without the body.
class HttpServer {
 public:
  using Handler = std::function<Task<HttpResponse>(HttpRequest)>;

  HttpServer(Loop& loop, Handler handler, HttpLimits limits = {});
  ~HttpServer();  // call Stop() first

  // Binds and begins to serve; port 0 takes a free one. Error(kInvalid) says why an
  // address cannot be listened on, e.g. that the port is in use.
  void Listen(const std::string& address, int port);
  int port() const;

  // Hangs up on everybody; ends when no handler runs any more.
  Task<> Stop();

 private:
  using Socket = boost::asio::ip::tcp::socket;

  Task<> Accept();
  Task<> Serve(std::shared_ptr<Socket> socket);
  Task<> Converse(std::shared_ptr<Socket> socket);
  Task<HttpResponse> Handle(HttpRequest request);
  Task<HttpResponse> Answer(HttpRequest request);
  bool MakeRoom();

  Loop& loop_;
  Handler handler_;
  HttpLimits limits_;
  log::Logger logger_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::list<std::shared_ptr<Socket>> open_;
  std::list<Socket*> silent_;  // those without a whole request, the longest first
  std::size_t unsent_bytes_ = 0;
  TaskGroup tasks_;
};

}  // namespace nodepool::net
