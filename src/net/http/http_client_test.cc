#include "net/http/http_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>

#include "async/task.h"
#include "async/task_group.h"
#include "base/crypto.h"
#include "net/http/http_server.h"
#include "net/servers_for_test.h"

namespace nodepool::net {

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A server that answers each connection with given bytes, whatever the request, or misbehaves in a
// worse way.
class RawServer {
 public:
  explicit RawServer(Loop& loop)
      : tasks_(loop, log::Logger("test")), acceptor_(loop.context(), {asio::ip::address_v4::loopback(), 0}) {}

  void Answer(std::string bytes, bool hangs_up) {
    tasks_.Spawn("raw server", Serve(std::move(bytes), hangs_up));
  }
  std::string Url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + path;
  }
  Task<> Stop() { return tasks_.Stop(); }
  // Answers the first request on each connection with `bytes`, reads the second one and closes.
  void AnswerOnceOnEach(std::string bytes) { tasks_.Spawn("raw server", ServeOnceOnEach(std::move(bytes))); }
  int connections() const { return connections_; }
  const std::vector<std::string>& requests() const { return requests_; }

 private:
  Task<> ServeOnceOnEach(std::string bytes) {
    while (true) {
      asio::ip::tcp::socket socket = co_await acceptor_.async_accept(asio::use_awaitable);
      ++connections_;
      tasks_.Spawn("connection", ConverseOnce(std::move(socket), bytes));
    }
  }
  Task<> ConverseOnce(asio::ip::tcp::socket socket, std::string bytes) {
    bool goes_on = co_await ReadRequest(socket);
    if (!goes_on) co_return;
    co_await asio::async_write(socket, asio::buffer(bytes), asio::use_awaitable);
    co_await ReadRequest(socket);
  }
  // A request of "METHOD /path", with a body of "end" if it is a POST. False: the client has closed.
  Task<bool> ReadRequest(asio::ip::tcp::socket& socket) {
    std::string request;
    while (!request.ends_with(request.starts_with("POST") ? "\r\n\r\nend" : "\r\n\r\n")) {
      char piece[4096];
      boost::system::error_code error;
      auto token = asio::redirect_error(asio::use_awaitable, error);
      std::size_t size = co_await socket.async_read_some(asio::buffer(piece), token);
      if (error) co_return false;
      request.append(piece, size);
    }
    requests_.push_back(request.substr(0, request.find(" HTTP")));
    co_return true;
  }

  Task<> Serve(std::string bytes, bool hangs_up) {
    while (true) {
      asio::ip::tcp::socket socket = co_await acceptor_.async_accept(asio::use_awaitable);
      ++connections_;
      tasks_.Spawn("connection", Converse(std::move(socket), bytes, hangs_up));
    }
  }
  Task<> Converse(asio::ip::tcp::socket socket, std::string bytes, bool hangs_up) {
    do {
      char request[4096];
      boost::system::error_code error;
      auto token = asio::redirect_error(asio::use_awaitable, error);
      co_await socket.async_read_some(asio::buffer(request), token);
      if (!error) co_await asio::async_write(socket, asio::buffer(bytes), token);
      if (error) co_return;
    } while (!hangs_up);
  }

  TaskGroup tasks_;
  asio::ip::tcp::acceptor acceptor_;
  int connections_ = 0;
  std::vector<std::string> requests_;
};

class CurlClientTest : public CurlFixture {
 protected:
  Task<HttpResponse> Answer(HttpRequest request) {
    HttpResponse response;
    if (request.path == "/sleep") co_await loop_.SleepFor(1h);
    if (request.path.starts_with("/redirect/")) {
      response.status = 307;
      response.headers = {{"Location", request.path.substr(9)}};
    } else if (request.path == "/loop") {
      response.status = 302;
      response.headers = {{"Location", "/loop"}};
    } else if (request.path == "/elsewhere") {
      response.status = 302;
      response.headers = {{"Location", "http://localhost:1/"}};
    } else if (request.path == "/other-port") {
      response.status = 302;
      response.headers = {{"Location", "http://127.0.0.1:1/"}};
    } else if (request.path == "/encrypted") {
      response.status = 302;
      response.headers = {{"Location", "https://127.0.0.1/"}};
    } else {
      response.status = request.path == "/missing" ? 404 : 200;
      response.body = request.method + " " + request.path + " " + request.Header("x-test") + " " +
                      std::to_string(request.body.size()) + " " + request.body.substr(0, 20);
      response.headers = {{"X-Agent", request.Header("user-agent")}, {"X-Digest", Sha256Hex(request.body)}};
    }
    co_return response;
  }

  void SetUp() override {
    HttpLimits limits;
    limits.body_bytes = 64 << 20;
    server_.emplace(
        loop_, [this](HttpRequest request) { return Answer(std::move(request)); }, limits);
    server_->Listen("127.0.0.1", 0);
  }
  void TearDown() override {
    RunToEnd(loop_, server_->Stop());
    RunToEnd(loop_, raw_.Stop());
  }
  std::string Url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(server_->port()) + path;
  }
  static HttpCall Get(std::string url) {
    HttpCall call;
    call.url = std::move(url);
    return call;
  }

  std::optional<HttpServer> server_;
  RawServer raw_{loop_};
};

TEST_F(CurlClientTest, SendsARequestAndGetsTheAnswer) {
  HttpCall call = Get(Url("/some?x=1"));
  call.method = "POST";
  call.headers = {{"X-Test", "yes"}};
  call.body = "the body";
  HttpReply reply = Send(std::move(call));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "POST /some yes 8 the body");
  EXPECT_EQ(reply.Header("x-agent"), "nodepool/test");
  EXPECT_EQ(Send(Get(Url("/missing"))).status, 404);
}

TEST_F(CurlClientTest, DeletesWithoutBody) {
  HttpCall call = Get(Url("/thing"));
  call.method = "DELETE";
  EXPECT_EQ(Send(std::move(call)).body, "DELETE /thing  0 ");
}

TEST_F(CurlClientTest, FollowsRedirectionsToTheSameOriginOnly) {
  HttpCall call = Get(Url("/redirect/there"));
  call.method = "POST";
  call.body = "kept";
  EXPECT_EQ(Send(std::move(call)).body, "POST /there  4 kept");
  for (const char* path : {"/elsewhere", "/other-port", "/encrypted"}) {
    EXPECT_THAT(Failure(Get(Url(path))).message(), HasSubstr("another place, which is not followed")) << path;
  }
  EXPECT_THAT(Failure(Get(Url("/loop"))).message(), HasSubstr("too many redirections"));
}

TEST_F(CurlClientTest, ARedirectionThatIsNotToBeFollowedIsAnAnswer) {
  HttpCall call = Get(Url("/redirect/there"));
  call.follows_redirects = false;
  EXPECT_EQ(Send(std::move(call)).status, 307);
}

TEST_F(CurlClientTest, ReusesConnections) {
  raw_.Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
  EXPECT_EQ(Send(Get(raw_.Url("/"))).body, "ok");
  EXPECT_EQ(Send(Get(raw_.Url("/"))).body, "ok");
  EXPECT_EQ(raw_.connections(), 1);
}

TEST_F(CurlClientTest, NothingListens) {
  HttpError error = Failure(Get("http://127.0.0.1:1/secret?token=abc"));
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_FALSE(error.may_have_been_seen());
  EXPECT_THAT(error.message(), AllOf(HasSubstr("http://127.0.0.1:1/secret"), Not(HasSubstr("abc"))));
  EXPECT_THAT(error.message(), Not(HasSubstr(" ms"))) << "the same failure has the same message";
}

TEST_F(CurlClientTest, AMalformedUrl) {
  EXPECT_EQ(Failure(Get("http://[x/")).verdict(), Verdict::kInvalid);
  EXPECT_EQ(Failure(Get("ftp://x/")).verdict(), Verdict::kInvalid);
}

TEST_F(CurlClientTest, ATruncatedAnswer) {
  raw_.Answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", true);
  HttpError error = Failure(Get(raw_.Url("/")));
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_TRUE(error.may_have_been_seen());
}

TEST_F(CurlClientTest, ATruncatedAnswerInChunks) {
  raw_.Answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf", true);
  EXPECT_EQ(Failure(Get(raw_.Url("/"))).verdict(), Verdict::kRetry);
}

// A reused connection that the server has closed meanwhile costs nothing.
TEST_F(CurlClientTest, AReusedConnectionThatIsClosed) {
  raw_.Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Send(Get(raw_.Url("/"))).body, "ok");
}

// The server reads a request completely, and closes: nobody knows whether it has carried it out.
TEST_F(CurlClientTest, WhatMayBeSentOnlyOnceIsNeverRepeated) {
  raw_.AnswerOnceOnEach("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  auto post = [this](const std::string& path, std::optional<bool> may_be_repeated) {
    HttpCall call = Get(raw_.Url(path));
    call.method = "POST";
    call.body = "end";
    call.may_be_repeated = may_be_repeated;
    return call;
  };
  for (const char* path : {"/1", "/2", "/3"}) EXPECT_EQ(Send(post(path, std::nullopt)).body, "ok");
  EXPECT_THAT(raw_.requests(), ElementsAre("POST /1", "POST /2", "POST /3"));
  EXPECT_EQ(raw_.connections(), 3) << "a kept connection may be closed meanwhile";

  EXPECT_EQ(Send(post("/4", true)).body, "ok") << "sent again where it met the end of a kept connection";
  EXPECT_EQ(Send(Get(raw_.Url("/5"))).body, "ok");
  EXPECT_LE(raw_.connections(), 5);
}

TEST_F(CurlClientTest, ACallThatMayBeRepeatedUsesTheConnectionThatIsKept) {
  raw_.Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
  HttpCall call = Get(raw_.Url("/"));
  call.method = "POST";
  call.may_be_repeated = true;
  HttpCall again = call;
  Send(std::move(call));
  Send(std::move(again));
  EXPECT_EQ(raw_.connections(), 1);
}

TEST_F(CurlClientTest, AServerThatClosesTheConnection) {
  raw_.Answer("", true);
  EXPECT_EQ(Failure(Get(raw_.Url("/"))).verdict(), Verdict::kRetry);
}

TEST_F(CurlClientTest, AServerThatStopsHalfWay) {
  raw_.Answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", false);
  HttpCall call = Get(raw_.Url("/"));
  call.timeouts.stall = 100ms;
  EXPECT_THAT(Failure(std::move(call)).message(), HasSubstr("stopped half way"));
}

TEST_F(CurlClientTest, AServerThatSaysNothing) {
  raw_.Answer("", false);
  HttpCall call = Get(raw_.Url("/"));
  call.timeouts.connect = 50ms;
  call.timeouts.answer = 50ms;
  HttpError error = Failure(std::move(call));
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_TRUE(error.may_have_been_seen());
  HttpCall whole = Get(raw_.Url("/"));
  whole.timeouts.total = 100ms;
  EXPECT_THAT(Failure(std::move(whole)).message(), HasSubstr("not complete in time"));
}

// driver-kubernetes.md 4.4
TEST_F(CurlClientTest, AnAnswerThatGoesOnIsHandedOverAsItArrives) {
  raw_.Answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n", false);
  std::string got;
  HttpCall call = Get(raw_.Url("/"));
  call.max_bytes = 1;
  call.timeouts.stall = 100ms;
  call.sink = [&got](std::string_view bytes) {
    got += bytes;
    return true;
  };
  HttpError error = Failure(std::move(call));
  EXPECT_EQ(got, "onetwo");
  EXPECT_THAT(error.message(), HasSubstr("stopped half way"));
}

TEST_F(CurlClientTest, AnAnswerOfWhichNoMoreIsWanted) {
  raw_.Answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n", false);
  HttpCall call = Get(raw_.Url("/"));
  call.sink = [](std::string_view) { return false; };
  HttpError error = Failure(std::move(call));
  EXPECT_EQ(error.verdict(), Verdict::kFail);
  EXPECT_THAT(error.message(), HasSubstr("not read to its end"));
}

TEST_F(CurlClientTest, ARefusalIsNotHandedOver) {
  HttpCall call = Get(Url("/missing"));
  bool is_called = false;
  call.sink = [&is_called](std::string_view) { return is_called = true; };
  HttpReply reply = Send(std::move(call));
  EXPECT_EQ(reply.status, 404);
  EXPECT_THAT(reply.body, HasSubstr("GET /missing"));
  EXPECT_FALSE(is_called);
}

TEST_F(CurlClientTest, AnswersWithoutEnd) {
  raw_.Answer("HTTP/1.1 200 OK\r\n\r\n" + std::string(100'000, 'x'), true);
  HttpCall call = Get(raw_.Url("/"));
  call.max_bytes = 1000;
  HttpError error = Failure(std::move(call));
  EXPECT_EQ(error.verdict(), Verdict::kFail);
  EXPECT_THAT(error.message(), HasSubstr("longer than 1000 bytes"));
}

// Each of them is within its own bound.
TEST_F(CurlClientTest, LongAnswersHaveABoundInCommon) {
  constexpr std::size_t kMebibyte = 1 << 20;
  CurlClient client(loop_, pool_, "nodepool/test", 5 * kMebibyte);
  raw_.Answer(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 9 * kMebibyte) +
                  std::string(4 * kMebibyte, 'x'),
              false);
  TaskGroup tasks(loop_, log::Logger("test"));
  std::vector<std::string> faults;
  auto send = [](CurlClient& sender, HttpCall call, std::vector<std::string>& faults) -> Task<> {
    Outcome<HttpReply> reply = co_await Attempt(sender.Send(std::move(call)));
    if (!reply && reply.error().verdict() == Verdict::kRetry) faults.push_back(reply.error().message());
  };
  for (int i = 0; i < 3; ++i) tasks.Spawn("send", send(client, Get(raw_.Url("/")), faults));
  auto await_two = [](Loop& loop, const std::vector<std::string>& failed) -> Task<> {
    while (failed.size() < 2) co_await loop.SleepFor(1ms);
  };
  RunToEnd(loop_, await_two(loop_, faults));
  for (const std::string& fault : faults) EXPECT_THAT(fault, HasSubstr("too long together"));
  EXPECT_EQ(RunToEnd(loop_, client.Send(Get(Url("/x")))).status, 200) << "short ones always fit";
  tasks.CancelAll();
  RunToEnd(loop_, tasks.Stop());
}

TEST_F(CurlClientTest, HeadersWithoutEnd) {
  std::string answer = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 10'000; ++i) answer += "X-Header: " + std::string(50, 'x') + "\r\n";
  raw_.Answer(answer + "\r\n", true);
  EXPECT_EQ(Failure(Get(raw_.Url("/"))).verdict(), Verdict::kFail);
}

TEST_F(CurlClientTest, Garbage) {
  raw_.Answer("\x01\x02\x03 nonsense\r\n\r\n", true);
  EXPECT_EQ(Failure(Get(raw_.Url("/"))).verdict(), Verdict::kRetry);
}

TEST_F(CurlClientTest, MayBeCancelledAtAnyTime) {
  TaskGroup tasks(loop_, log::Logger("test"));
  auto send = [](HttpClient& client, HttpCall call) -> Task<> { co_await client.Send(std::move(call)); };
  raw_.Answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", false);
  for (const std::string& url : {Url("/sleep"), raw_.Url("/"), std::string("http://127.0.0.1:1/")}) {
    for (Duration wait : {Duration(0us), Duration(100us), Duration(2ms), Duration(20ms)}) {
      tasks.Spawn("send", send(client_, Get(url)));
      RunToEnd(loop_, loop_.SleepFor(wait));
      tasks.CancelAll();
      RunToEnd(loop_, tasks.Join());
    }
  }
  EXPECT_EQ(Send(Get(Url("/x"))).status, 200);
  RunToEnd(loop_, tasks.Stop());
}

class UploadTest : public CurlClientTest {
 protected:
  void SetUp() override {
    CurlClientTest::SetUp();
    char name[] = "/tmp/nodepool-upload-XXXXXX";
    int fd = ::mkstemp(name);
    path_ = name;
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::write(fd, "begin", 5), 5);
    ASSERT_EQ(::pwrite(fd, "end", 3, kSize / 2), 3);
    ASSERT_EQ(::ftruncate(fd, kSize), 0);
    ::close(fd);
    content_ = "begin" + std::string(kSize / 2 - 5, '\0') + "end" + std::string(kSize - kSize / 2 - 3, '\0');
  }
  void TearDown() override {
    CurlClientTest::TearDown();
    std::filesystem::remove(path_);
  }
  HttpCall Put(std::string url) {
    HttpCall call = Get(std::move(url));
    call.method = "PUT";
    call.upload = HttpUpload{path_, [this](std::uint64_t sent, std::uint64_t size) {
                               sent_ = sent;
                               size_ = size;
                             }};
    return call;
  }
  static constexpr int kSize = (5 << 20) + 17;
  std::string path_;
  std::string content_;  // two stretches of data, and holes
  std::uint64_t sent_ = 0;
  std::uint64_t size_ = 0;
};

TEST_F(UploadTest, SendsAFile) {
  HttpReply reply = Send(Put(Url("/image")));
  std::string begin("begin\0", 6);
  EXPECT_THAT(reply.body, HasSubstr("PUT /image  " + std::to_string(kSize) + " " + begin));
  EXPECT_EQ(reply.Header("x-digest"), Sha256Hex(content_));
  EXPECT_EQ(sent_, static_cast<std::uint64_t>(kSize));
  EXPECT_EQ(size_, static_cast<std::uint64_t>(kSize));
}

TEST_F(UploadTest, AServerThatReadsNothing) {
  raw_.Answer("", false);
  HttpCall call = Put(raw_.Url("/"));
  call.timeouts.stall = 200ms;
  EXPECT_EQ(Failure(std::move(call)).verdict(), Verdict::kRetry);
}

TEST_F(UploadTest, ARefusalBeforeTheEnd) {
  raw_.Answer("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno", true);
  HttpReply reply;
  try {
    reply = Send(Put(raw_.Url("/")));
    EXPECT_EQ(reply.status, 413);
  } catch (const HttpError& error) {
    EXPECT_EQ(error.verdict(), Verdict::kRetry);  // the connection was reset first
  }
}

TEST_F(UploadTest, AFileThatIsMissing) {
  std::filesystem::remove(path_);
  EXPECT_THROW(Send(Put(Url("/image"))), Error);
}

TEST(UrlForLog, HasNoSecrets) {
  EXPECT_EQ(UrlForLog("https://user:secret@host:1/path?token=secret#x"), "https://host:1/path");
  EXPECT_EQ(UrlForLog("::"), "(no URL)");
}

}  // namespace

}  // namespace nodepool::net
