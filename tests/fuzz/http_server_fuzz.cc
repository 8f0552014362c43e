// Any bytes on a connection to the web server: the requests that its handler gets are those that a strict
// reader finds (http_messages.h), in order; the server may end earlier, never read further or elsewhere. Then
// it hangs up.
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>

#include "async/task.h"
#include "http_messages.h"
#include "net/http/http_server.h"

namespace nodepool::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr HttpLimits kLimits{.header_bytes = 512, .body_bytes = 256};

class WebServer {
 public:
  WebServer() {
    log::SetLevel("", log::Level::kCritical);
    server_.Listen("127.0.0.1", 0);
  }

  // The requests that a client's bytes led to, until the server hung up.
  std::vector<HttpRequest> Converse(std::string_view bytes) {
    handled_.clear();
    RunToEnd(loop_, Send(bytes));
    loop_.context().restart();
    return std::move(handled_);
  }

 private:
  Task<HttpResponse> Handle(HttpRequest request) {
    handled_.push_back(std::move(request));
    co_return HttpResponse();
  }

  Task<> Send(std::string_view bytes) {
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    tcp::socket socket(loop_.context());
    tcp::endpoint endpoint(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(server_.port()));
    co_await socket.async_connect(endpoint, asio::use_awaitable);
    co_await asio::async_write(socket, asio::buffer(bytes), token);
    boost::system::error_code ignored;
    socket.shutdown(tcp::socket::shutdown_send, ignored);
    char answer[4096];
    for (error.clear(); !error;) co_await socket.async_read_some(asio::buffer(answer), token);
  }

  Loop loop_;
  std::vector<HttpRequest> handled_;
  HttpServer server_{loop_, [this](HttpRequest request) { return Handle(std::move(request)); }, kLimits};
};

void Check(const std::vector<HttpRequest>& handled, std::string_view bytes) {
  std::size_t count = 0;
  for (const HttpMessage& message : StrictMessages(bytes)) {
    HttpRequest expected;
    if (!ParseTarget(message.target, expected)) continue;  // answered without the handler
    if (count == handled.size()) return;
    const HttpRequest& request = handled[count++];
    bool is_same = request.method == message.method && request.path == expected.path &&
                   request.query == expected.query && request.body == message.body;
    if (!is_same || request.body.size() > kLimits.body_bytes) __builtin_trap();
  }
  if (count < handled.size()) __builtin_trap();
}

}  // namespace
}  // namespace nodepool::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Kept: each input has a connection, not a server, of its own.
  static auto& server = *new nodepool::net::WebServer;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  nodepool::net::Check(server.Converse(bytes), bytes);
  return 0;
}
