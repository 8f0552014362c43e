#include <list>

#include "async/event.h"
#include "net/servers_for_test.h"

namespace nodepool::net {

// Answers that go on (BodyStream).

namespace {

namespace asio = boost::asio;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Pieces that a test sends one by one; the stream ends with it.
class Pieces : public BodyStream {
 public:
  ~Pieces() override { *is_gone_ = true; }
  Task<std::shared_ptr<const std::string>> Next() override {
    std::string piece = co_await queue_.Pop();
    if (piece == "end") co_return nullptr;
    co_return std::make_shared<const std::string>(std::move(piece));
  }
  void Send(std::string piece) { queue_.Push(std::move(piece)); }
  std::shared_ptr<bool> is_gone() { return is_gone_; }

 private:
  Queue<std::string> queue_;
  std::shared_ptr<bool> is_gone_ = std::make_shared<bool>(false);
};

// Answers every request with the pieces.
Task<HttpResponse> Streamed(std::weak_ptr<Pieces> pieces, HttpRequest) {
  HttpResponse response;
  response.content_type = "text/event-stream";
  response.stream = pieces.lock();
  if (!response.stream) response.body = "no stream";
  co_return response;
}

class HttpStreamTest : public HttpServerTest {
 protected:
  // Serves streams; the server alone holds them.
  std::shared_ptr<Pieces> StartStreams(HttpLimits limits = {}) {
    auto pieces = std::make_shared<Pieces>();
    std::weak_ptr<Pieces> offered = pieces;
    server_ = std::make_unique<HttpServer>(
        loop_, [offered](HttpRequest request) { return Streamed(offered, std::move(request)); }, limits);
    server_->Listen("127.0.0.1", 0);
    return pieces;
  }
  // A further client that listens to the pieces until the test ends. It has the answer's head: before, its
  // connection still has a seat of those that ask, which the next one may be given.
  void Listen() { RunToEnd(loop_, AskAndKeep(listeners_.emplace_back(loop_.context()))); }
  Task<> AskAndKeep(asio::ip::tcp::socket& socket) {
    asio::ip::tcp::endpoint server(asio::ip::address_v4::loopback(),
                                   static_cast<std::uint16_t>(server_->port()));
    co_await socket.async_connect(server, asio::use_awaitable);
    co_await asio::async_write(socket, asio::buffer(std::string_view(kAsk)), asio::use_awaitable);
    std::string head;
    co_await asio::async_read_until(socket, asio::dynamic_buffer(head, 1024), "\r\n\r\n",
                                    asio::use_awaitable);
  }
  Task<> Reach(const bool& is_reached) {
    SteadyTime deadline = loop_.SteadyNow() + std::chrono::seconds(10);
    while (!is_reached && loop_.SteadyNow() < deadline) co_await loop_.SleepFor(std::chrono::milliseconds(1));
    EXPECT_TRUE(is_reached);
  }

  std::list<asio::ip::tcp::socket> listeners_;
};

TEST_F(HttpStreamTest, AStreamIsSentInChunksAsItComes) {
  auto pieces = StartStreams();
  for (const char* piece : {"one", "", "two", "end"}) pieces->Send(piece);
  std::string answer = Exchange(kAsk);
  EXPECT_THAT(answer, AllOf(HasSubstr("Transfer-Encoding: chunked\r\n"), HasSubstr("Connection: close\r\n"),
                            HasSubstr("Content-Type: text/event-stream\r\n"),
                            EndsWith("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")));
}

TEST_F(HttpStreamTest, AnOldClientGetsAStreamWithoutChunks) {
  auto pieces = StartStreams();
  for (const char* piece : {"one", "two", "end"}) pieces->Send(piece);
  std::string answer = Exchange("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, EndsWith("\r\n\r\nonetwo"));
  EXPECT_THAT(answer, ::testing::Not(HasSubstr("chunked")));
}

TEST_F(HttpStreamTest, TheHeadOfAStreamIsSentAlone) {
  auto pieces = StartStreams();
  std::string answer = Exchange("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, AllOf(HasSubstr("text/event-stream"), EndsWith("\r\n\r\n")));
}

TEST_F(HttpStreamTest, AStreamEndsWhenItsClientHangsUp) {
  auto pieces = StartStreams();
  std::shared_ptr<bool> is_gone = pieces->is_gone();
  asio::ip::tcp::socket client(loop_.context());
  asio::ip::tcp::endpoint server(asio::ip::address_v4::loopback(),
                                 static_cast<std::uint16_t>(server_->port()));
  client.connect(server);
  asio::write(client, asio::buffer(std::string(kAsk)));
  auto has_begun = [&]() -> bool { return pieces.use_count() > 1; };
  while (!has_begun()) RunToEnd(loop_, loop_.SleepFor(std::chrono::milliseconds(1)));
  pieces.reset();
  EXPECT_FALSE(*is_gone);
  client.close();
  RunToEnd(loop_, Reach(*is_gone));
}

TEST_F(HttpStreamTest, AClientThatDoesNotReadItsStreamIsHungUpOn) {
  auto pieces = StartStreams({.answer_time = std::chrono::milliseconds(50)});
  std::shared_ptr<bool> is_gone = pieces->is_gone();
  pieces->Send(std::string(20 << 20, 'x'));
  asio::ip::tcp::socket client(loop_.context());
  asio::ip::tcp::endpoint server(asio::ip::address_v4::loopback(),
                                 static_cast<std::uint16_t>(server_->port()));
  client.connect(server);
  asio::write(client, asio::buffer(std::string(kAsk)));
  while (pieces.use_count() == 1) RunToEnd(loop_, loop_.SleepFor(std::chrono::milliseconds(1)));
  pieces.reset();
  RunToEnd(loop_, Reach(*is_gone));
}

TEST_F(HttpStreamTest, StreamsHaveALimitOfTheirOwn) {
  auto pieces = StartStreams({.connections = 1, .streams = 2});  // HTTP-3
  Listen();
  Listen();
  EXPECT_THAT(Exchange("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("There are too many streams; try again later")));
}

TEST_F(HttpStreamTest, AStopEndsStreams) {
  auto pieces = StartStreams();
  Listen();
  RunToEnd(loop_, server_->Stop());
  EXPECT_EQ(pieces.use_count(), 1) << "nothing holds the stream any more";
}

}  // namespace

}  // namespace nodepool::net
