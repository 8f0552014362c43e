#include "net/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "async/event.h"
#include "base/error.h"
#include "net/http/curl_client.h"
#include "net/http/hang_up.h"

namespace nodepool::net {
namespace {

namespace asio = boost::asio;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Task<HttpResponse> Echo(HttpRequest request) {
  if (request.path == "/throws") throw Error(Verdict::kFail, "no luck");
  HttpResponse response;
  response.body = request.method + " " + request.path + " a=" + request.Parameter("a") + " " + request.body;
  response.headers = {{"X-Agent", request.Header("user-agent")}};
  co_return response;
}

Task<HttpResponse> EchoAfter(Event& asked, Event& answered, HttpRequest request) {
  asked.Set();
  co_await answered.Wait();
  co_return co_await Echo(std::move(request));
}

Task<HttpResponse> Huge(int& count, HttpRequest request) {
  HttpResponse response;
  if (request.path == "/large") {
    ++count;
    response.body.assign(20 << 20, 'x');
  }
  co_return response;
}

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
    asio::ip::tcp::socket socket(loop_.context());
    HangUpLater fail(loop_, socket, std::chrono::seconds(10));
    asio::ip::tcp::endpoint server(asio::ip::address_v4::loopback(),
                                   static_cast<std::uint16_t>(server_->port()));
    co_await socket.async_connect(server, asio::use_awaitable);
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await asio::async_write(socket, asio::buffer(bytes), token);
    std::string answer;
    char part[4096];
    while (true) {
      std::size_t size = co_await socket.async_read_some(asio::buffer(part), token);
      answer.append(part, size);
      if (error) co_return answer;
    }
  }
  Task<> TalkInto(std::string& answer, std::string bytes) { answer = co_await Talk(std::move(bytes)); }
  std::string Exchange(std::string bytes) { return RunToEnd(loop_, Talk(std::move(bytes))); }

  Loop loop_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, PassesTheParsedRequestOn) {
  Start();
  std::string answer = Exchange(
      "POST /some%20path?a=1%2B1+b HTTP/1.1\r\nHost: x\r\nUser-Agent: me\r\nConnection: close\r\n"
      "Content-Length: 4\r\n\r\nbody");
  EXPECT_THAT(answer,
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("X-Agent: me\r\n"),
                    HasSubstr("Content-Type: text/plain; charset=UTF-8\r\n"),
                    HasSubstr("Content-Length: 28\r\n"), EndsWith("\r\n\r\nPOST /some path a=1+1 b body")));
}

TEST_F(HttpServerTest, HeadHasTheLengthAndNoBody) {
  Start();
  std::string answer = Exchange("HEAD /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, AllOf(HasSubstr("Content-Length: 11\r\n"), EndsWith("\r\n\r\n")));
}

TEST_F(HttpServerTest, AConnectionServesSeveralRequests) {
  Start();
  std::string answer = Exchange(
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"
      "GET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, AllOf(HasSubstr("GET /1"), HasSubstr("GET /2")));
}

TEST_F(HttpServerTest, AConnectionEndsAfterItsMaximumOfRequests) {
  HttpLimits limits;
  limits.requests_per_connection = 1;
  Start(limits);
  EXPECT_THAT(Exchange("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"), HasSubstr("Connection: close\r\n"));
}

TEST_F(HttpServerTest, GarbageIsRefused) {
  Start();
  EXPECT_THAT(Exchange("what?\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Exchange("GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Exchange("GET nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 400 "));
}

// RFC 9112, 3.2 and 6.3
TEST_F(HttpServerTest, RequestsThatAProxyMayUnderstandDifferentlyAreRefused) {
  Start();
  const std::string kNext = "GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  for (std::string head : {"GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n",
                           "GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n",
                           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n",
                           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n",
                           "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: identity\r\n"}) {
    std::string answer = Exchange(head + "\r\n" + kNext);
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("Connection: close\r\n"),
                              HasSubstr("Bad Request: it"), Not(HasSubstr("/next"))))
        << head;
  }
  EXPECT_THAT(Exchange("GET /old HTTP/1.0\r\n\r\n"), HasSubstr("GET /old"));
  EXPECT_THAT(Exchange("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n"
                       "2\r\nok\r\n0\r\n\r\n"),
              HasSubstr("POST / a= ok"));
}

TEST_F(HttpServerTest, TooLongRequestsAreRefused) {
  HttpLimits limits;
  limits.header_bytes = 200;
  limits.body_bytes = 10;
  Start(limits);
  EXPECT_THAT(Exchange("GET / HTTP/1.1\r\nX: " + std::string(300, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpServerTest, SlowConnectionsAreClosed) {
  HttpLimits limits;
  limits.request_time = std::chrono::milliseconds(50);
  limits.idle_time = std::chrono::milliseconds(50);
  Start(limits);
  EXPECT_EQ(Exchange("GET / HTT"), "") << "half a request";
  EXPECT_THAT(Exchange("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 200 ")) << "then silence";
}

TEST_F(HttpServerTest, AFailingHandlerIsAnInternalError) {
  Start();
  log::Capture log;
  EXPECT_THAT(Exchange("GET /throws HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 500 "), Not(HasSubstr("no luck"))));
  EXPECT_EQ(log.Count("/throws could not be answered: no luck"), 1);
}

TEST_F(HttpServerTest, SilentConnectionsAreClosedForNewOnes) {
  HttpLimits limits;
  limits.connections = 2;
  Start(limits);
  auto connect = [&] {
    asio::ip::tcp::socket socket(loop_.context());
    socket.connect({asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(server_->port())});
    return socket;
  };
  std::vector<asio::ip::tcp::socket> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connect());
  asio::write(silent.back(), asio::buffer(std::string("GET / HTT")));
  SteadyTime start = loop_.SteadyNow();
  EXPECT_THAT(Exchange("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_LT(loop_.SteadyNow() - start, limits.request_time);
}

TEST_F(HttpServerTest, OneTooManyGets503) {
  HttpLimits limits;
  limits.connections = 1;
  Event asked, answered;
  server_ = std::make_unique<HttpServer>(
      loop_, [&](HttpRequest request) { return EchoAfter(asked, answered, std::move(request)); }, limits);
  server_->Listen("127.0.0.1", 0);
  TaskGroup tasks(loop_, log::Logger("test"));
  std::string first;
  tasks.Spawn("first", TalkInto(first, "GET /1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  RunToEnd(loop_, asked.Wait());
  std::string second = Exchange("GET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(second, AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("\r\n\r\nToo many connections\n")));
  answered.Set();
  RunToEnd(loop_, tasks.Join());
  EXPECT_THAT(first, StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, UnreadAnswersDoNotFillTheMemory) {
  HttpLimits limits;
  limits.unsent_bytes = 40 << 20;
  int large = 0;
  server_ = std::make_unique<HttpServer>(
      loop_, [&large](HttpRequest request) { return Huge(large, std::move(request)); }, limits);
  server_->Listen("127.0.0.1", 0);
  std::vector<asio::ip::tcp::socket> greedy;
  for (int i = 0; i < 2; ++i) {
    asio::ip::tcp::socket& socket = greedy.emplace_back(loop_.context());
    socket.connect({asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(server_->port())});
    asio::write(socket, asio::buffer(std::string("GET /large HTTP/1.1\r\nHost: x\r\n\r\n")));
  }
  while (large < 2) RunToEnd(loop_, loop_.SleepFor(std::chrono::milliseconds(1)));
  EXPECT_THAT(Exchange("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Exchange("GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
  greedy.clear();
  while (
      !Exchange("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").starts_with("HTTP/1.1 200 ")) {
  }
}

TEST_F(HttpServerTest, AnAnswerThatIsTooLargeIsNotSent) {
  HttpLimits limits;
  limits.unsent_bytes = 100'000;
  int large = 0;
  server_ = std::make_unique<HttpServer>(
      loop_, [&large](HttpRequest request) { return Huge(large, std::move(request)); }, limits);
  server_->Listen("127.0.0.1", 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Exchange("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("The answer is too large; ask for less")));
  }
  EXPECT_THAT(Exchange("HEAD /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, APortInUseIsAClearError) {  // operations.3.2
  HttpServer& first = Start();
  HttpServer second(loop_, Echo);
  try {
    second.Listen("127.0.0.1", first.port());
    FAIL() << "it was bound twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              fmt::format("the web server cannot listen on 127.0.0.1 port {}: Address already in "
                          "use; set webapp.port or use --no-webapp",
                          first.port()));
  }
}

TEST_F(HttpServerTest, OurOwnClient) {
  HttpCall call;
  call.url = fmt::format("http://localhost:{}/x?a=b", Start().port());
  call.max_bytes = 100;
  call.uses_proxy = false;
  BlockingPool pool(1);
  CurlClient client(loop_, pool, "test");
  HttpReply reply = RunToEnd(loop_, client.Send(call));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "GET /x a=b ");
  RunToEnd(loop_, server_->Stop());
  EXPECT_THROW(RunToEnd(loop_, client.Send(call)), HttpError);
}

}  // namespace
}  // namespace nodepool::net
