#include "net/http/http_server.h"

#include "async/event.h"
#include "net/http/exchange.h"
#include "net/http/http_client.h"
#include "net/servers_for_test.h"

namespace nodepool::net {
namespace {

namespace asio = boost::asio;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Task<HttpResponse> EchoAfter(Event& asked, Event& answered, HttpRequest request) {
  asked.Set();
  co_await answered.Wait();
  co_return co_await Echo(std::move(request));
}

// What is not to be answered at once waits, with a proof or without.
Task<HttpResponse> EchoByPath(Event& asked, Event& answered, HttpRequest request) {
  if (request.path == "/at-once") return Echo(std::move(request));
  if (request.path == "/proven") request.prove("ci");
  return EchoAfter(asked, answered, std::move(request));
}

Task<HttpResponse> Huge(int& count, HttpRequest request) {
  HttpResponse response;
  if (request.path == "/large") {
    ++count;
    response.body.assign(20 << 20, 'x');
  }
  co_return response;
}

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

// HTTP-5: what clients, libraries and proxies send by themselves
TEST_F(HttpServerTest, OrdinaryClientsAreUnderstood) {
  Start();
  struct Case {
    const char* why;
    std::string sent;
    std::string answer;  // the end of it
  };
  const std::string kClose = "Host: x\r\nConnection: close\r\n\r\n";
  const std::string kChunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + kClose;
  const Case cases[] = {
      {"a target in absolute form", "GET http://y:80/p?a=1 HTTP/1.1\r\n" + kClose, "\r\n\r\nGET /p a=1 "},
      {"its scheme in upper case", "GET HTTP://y/p HTTP/1.1\r\n" + kClose, "\r\n\r\nGET /p a= "},
      {"without a path", "GET http://y HTTP/1.1\r\n" + kClose, "\r\n\r\nGET / a= "},
      {"with parameters alone", "GET http://y?a=1 HTTP/1.1\r\n" + kClose, "\r\n\r\nGET / a=1 "},
      {"empty lines before a request", "\r\n\r\nGET /p HTTP/1.1\r\n" + kClose, "\r\n\r\nGET /p a= "},
      {"chunks with extensions and trailers", kChunked + "2;x=y\r\nok\r\n1\r\n!\r\n0\r\nX-Sum: 1\r\n\r\n",
       "\r\n\r\nPOST / a= ok!"},
      {"a header on two lines", "GET /p HTTP/1.1\r\nX: a\r\n b\r\n" + kClose, "\r\n\r\nGET /p a= "},
      {"a host in brackets", "GET /p HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n",
       "\r\n\r\nGET /p a= "},
      {"a method in lower case is another one", "get /p HTTP/1.1\r\n" + kClose, "\r\n\r\nget /p a= "},
      {"OPTIONS", "OPTIONS /p HTTP/1.1\r\n" + kClose, "\r\n\r\nOPTIONS /p a= "},
      {"HTTP/1.0 without Host", "GET /p HTTP/1.0\r\n\r\n", "\r\n\r\nGET /p a= "},
      {"other expectations", "POST / HTTP/1.1\r\nExpect: x\r\nContent-Length: 2\r\n" + kClose + "ok",
       "\r\n\r\nPOST / a= ok"},
      {"a body beside the question whether to send it",
       "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n" + kClose + "ok",
       "\r\n\r\nPOST / a= ok"},
  };
  for (const Case& each : cases) {
    std::string answer = Exchange(each.sent);
    EXPECT_THAT(answer, EndsWith(each.answer)) << each.why;
    EXPECT_THAT(answer, HasSubstr("HTTP/1.1 200 ")) << each.why;
  }
  for (const char* bad : {"OPTIONS * HTTP/1.1\r\n", "CONNECT x:80 HTTP/1.1\r\n", "GET http:///p HTTP/1.1\r\n",
                          "GET ftp://y/p HTTP/1.1\r\n"}) {
    EXPECT_THAT(Exchange(bad + kClose), StartsWith("HTTP/1.1 400 ")) << bad;
  }
}

// HTTP-5
TEST_F(HttpServerTest, TheHostOfAnAbsoluteTargetCounts) {
  HttpRequest request;
  request.headers["host"] = "localhost";
  ASSERT_TRUE(ParseTarget("http://evil.example.com:8005/p", request));
  EXPECT_EQ(request.Header("host"), "evil.example.com:8005");
  EXPECT_EQ(request.path, "/p");
}

// HTTP-5
TEST_F(HttpServerTest, AClientThatAsksWhetherToSendItsBodyIsAnsweredAtOnce) {
  Start({.body_bytes = 10});
  auto ask = [](std::string headers) {
    return "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-Continue\r\n" + headers + "\r\n";
  };
  EXPECT_THAT(Exchange(ask("Content-Length: 11\r\n")), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Exchange(ask("Content-Length: 1, 1\r\n")), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Exchange(ask("Content-Length: 0\r\n")), StartsWith("HTTP/1.1 200 "))
      << "there is nothing to send";
  asio::ip::tcp::socket client(loop_.context());
  client.connect({asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(server_->port())});
  asio::write(client, asio::buffer(ask("Content-Length: 2\r\n")));
  while (client.available() == 0) RunToEnd(loop_, loop_.SleepFor(std::chrono::milliseconds(1)));
  char answer[1024];
  std::size_t size = client.read_some(asio::buffer(answer));
  EXPECT_EQ(std::string_view(answer, size), "HTTP/1.1 100 Continue\r\n\r\n");
  asio::write(client, asio::buffer(std::string_view("ok")));
  while (client.available() == 0) RunToEnd(loop_, loop_.SleepFor(std::chrono::milliseconds(1)));
  size = client.read_some(asio::buffer(answer));
  EXPECT_THAT(std::string(answer, size), AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("POST / a= ok")));
}

// HTTP-5
TEST_F(HttpServerTest, AnOldClientMayKeepItsConnection) {
  Start();
  std::string ask = "GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  std::string answer = Exchange(ask + "GET /2 HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer,
              AllOf(HasSubstr("Connection: keep-alive\r\n"), HasSubstr("GET /1"), EndsWith("GET /2 a= ")));
}

TEST_F(HttpServerTest, AnAnswerWithoutContentHasNoLength) {
  for (int status : {204, 304}) {
    HttpResponse response;
    response.status = status;
    std::string head = HeadOf(response, {.keeps_alive = true});
    EXPECT_THAT(head, Not(HasSubstr("Content-"))) << head;
    EXPECT_THAT(head, EndsWith("\r\n\r\n"));
  }
}

// RFC 9112, 3.2 and 6.3
TEST_F(HttpServerTest, RequestsThatAProxyMayUnderstandDifferentlyAreRefused) {
  Start();
  const std::string kNext = "GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  for (std::string head : {"GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n",
                           "GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n",
                           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n",
                           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n",
                           "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: identity\r\n",
                           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 00\r\n",
                           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 0\r\n"}) {
    std::string answer = Exchange(head + "\r\n" + kNext);
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("Connection: close\r\n"),
                              HasSubstr("Bad Request: it"), Not(HasSubstr("/next"))))
        << head;
  }
  EXPECT_THAT(Exchange("GET /old HTTP/1.0\r\n\r\n"), HasSubstr("GET /old"));
  EXPECT_THAT(Exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \t2 \t\r\nConnection: close\r\n\r\nok"),
              HasSubstr("POST / a= ok"));
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

// HTTP-1, HTTP-2: of its only place for strangers
TEST_F(HttpServerTest, AStrangerGivesWayAndAProvenClientDoesNot) {
  HttpLimits limits;
  limits.connections = 1;
  Event asked, answered;
  server_ = std::make_unique<HttpServer>(
      loop_, [&](HttpRequest request) { return EchoByPath(asked, answered, std::move(request)); }, limits);
  server_->Listen("127.0.0.1", 0);
  auto get = [](std::string path) {
    return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  };
  TaskGroup tasks(loop_, log::Logger("test"));
  std::string proven, stranger;
  for (auto [answer, path] : {std::pair(&proven, "/proven"), std::pair(&stranger, "/stranger")}) {
    asked.Reset();
    tasks.Spawn("ask", TalkInto(*answer, get(path)));
    RunToEnd(loop_, asked.Wait());
  }
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Exchange(get("/at-once")), StartsWith("HTTP/1.1 200 "));
  answered.Set();
  RunToEnd(loop_, tasks.Join());
  EXPECT_THAT(proven, StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(stranger, "") << "it was hung up on";
}

// HTTP-1
TEST_F(HttpServerTest, WhoTakesNothingGivesWay) {
  HttpLimits limits;
  limits.connections = 20;
  int large = 0;
  server_ = std::make_unique<HttpServer>(
      loop_, [&large](HttpRequest request) { return Huge(large, std::move(request)); }, limits);
  server_->Listen("127.0.0.1", 0);
  std::vector<asio::ip::tcp::socket> deaf;
  for (int i = 0; i < 20; ++i) {
    asio::ip::tcp::socket& socket = deaf.emplace_back(loop_.context());
    socket.connect({asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(server_->port())});
    std::string many;
    for (int each = 0; each < 100; ++each) many += kAsk;
    asio::write(socket, asio::buffer("GET /large HTTP/1.1\r\nHost: x\r\n\r\n" + many));
  }
  SteadyTime start = loop_.SteadyNow();
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Exchange("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                StartsWith("HTTP/1.1 200 "));
  }
  EXPECT_LT(loop_.SteadyNow() - start, limits.request_time);
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
