#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>

#include "async/run_to_end.h"
#include "base/error.h"
#include "net/http/connection.h"
#include "net/http/http_server.h"

namespace nodepool::net {

// Answers with what was asked.
inline Task<HttpResponse> Echo(HttpRequest request) {
  if (request.path == "/throws") throw Error(Verdict::kFail, "no luck");
  HttpResponse response;
  response.body = request.method + " " + request.path + " a=" + request.Parameter("a") + " " + request.body;
  response.headers = {{"X-Agent", request.Header("user-agent")}};
  co_return response;
}

inline constexpr const char* kAsk = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

// A server, and clients that send bytes.
class HttpServerTest : public ::testing::Test {
 protected:
  HttpServer& Start(HttpLimits limits = {}) {
    server_ = std::make_unique<HttpServer>(loop_, Echo, limits);
    server_->Listen("127.0.0.1", 0);
    return *server_;
  }
  void TearDown() override {
    if (server_) RunToEnd(loop_, server_->Stop());
  }

  // Sends `bytes` and reads until the server closes the connection.
  Task<std::string> Talk(std::string bytes) {
    boost::asio::ip::tcp::socket socket(loop_.context());
    HangUpLater fail(loop_, socket, std::chrono::seconds(10));
    boost::asio::ip::tcp::endpoint server(boost::asio::ip::address_v4::loopback(),
                                          static_cast<std::uint16_t>(server_->port()));
    co_await socket.async_connect(server, boost::asio::use_awaitable);
    boost::system::error_code error;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
    co_await boost::asio::async_write(socket, boost::asio::buffer(bytes), token);
    std::string answer;
    char part[4096];
    while (true) {
      std::size_t size = co_await socket.async_read_some(boost::asio::buffer(part), token);
      answer.append(part, size);
      if (error) co_return answer;
    }
  }
  Task<> TalkInto(std::string& answer, std::string bytes) { answer = co_await Talk(std::move(bytes)); }
  std::string Exchange(std::string bytes) { return RunToEnd(loop_, Talk(std::move(bytes))); }

  Loop loop_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace nodepool::net
