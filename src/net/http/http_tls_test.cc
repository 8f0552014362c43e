// The web server over TLS (http-tls.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>

#include "async/event.h"
#include "net/http/connection.h"
#include "net/http/http_server.h"
#include "net/servers_for_test.h"

namespace nodepool::net {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using asio::ip::tcp;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kClosing = "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

// The pieces of a stream that a test sends one by one.
class TlsPieces : public BodyStream {
 public:
  Task<std::shared_ptr<const std::string>> Next() override {
    std::string piece = co_await queue_.Pop();
    if (piece == "end") co_return nullptr;
    co_return std::make_shared<const std::string>(std::move(piece));
  }
  void Send(std::string piece) { queue_.Push(std::move(piece)); }

 private:
  Queue<std::string> queue_;
};

Task<HttpResponse> PathOrStream(std::weak_ptr<TlsPieces> pieces, HttpRequest request) {
  HttpResponse response;
  response.body = request.method + " " + request.path + " from " + request.peer;
  if (request.path == "/large") response.body.assign(20 << 20, 'x');
  if (request.path == "/stream") response.stream = pieces.lock();
  co_return response;
}

// A client's connection; how it ended is in `error`.
struct TlsClient {
  TlsClient(Loop& loop, asio::ssl::context& context) : stream(loop.context(), context) {}

  std::string CommonName() {
    char name[100] = "";
    X509* shown = SSL_get1_peer_certificate(stream.native_handle());
    X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, name, sizeof name);
    X509_free(shown);
    return name;
  }

  asio::ssl::stream<tcp::socket> stream;
  boost::system::error_code error;
};

class HttpTlsTest : public ::testing::Test {
 protected:
  void Start(HttpLimits limits = {}, bool has_tls = true) {
    std::optional<CertificateFiles> certificate;
    if (has_tls) certificate = files_;
    std::weak_ptr<TlsPieces> pieces = pieces_;
    server_.emplace(
        loop_, [pieces](HttpRequest request) { return PathOrStream(pieces, std::move(request)); }, limits,
        certificate);
    server_->Listen("127.0.0.1", 0);
  }
  void TearDown() override {
    RunToEnd(loop_, tasks_.Stop());
    if (server_) RunToEnd(loop_, server_->Stop());
  }

  tcp::endpoint Place() const {
    return {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(server_->port())};
  }
  // Connects and shakes hands; what fails is in the client's `error`.
  Task<> Open(TlsClient& client) {
    HangUpLater fail(loop_, client.stream.next_layer(), 20s);
    co_await client.stream.next_layer().async_connect(Place(), asio::use_awaitable);
    auto token = asio::redirect_error(asio::use_awaitable, client.error);
    co_await client.stream.async_handshake(asio::ssl::stream_base::client, token);
  }
  Task<> Send(TlsClient& client, std::string bytes) {
    auto token = asio::redirect_error(asio::use_awaitable, client.error);
    co_await asio::async_write(client.stream, asio::buffer(bytes), token);
  }
  // Until the answer contains `end`, or until the connection ends.
  Task<std::string> Read(TlsClient& client, std::string end = "") {
    HangUpLater fail(loop_, client.stream.next_layer(), 20s);
    auto token = asio::redirect_error(asio::use_awaitable, client.error);
    std::string answer;
    char part[16384];
    while (!client.error && (end.empty() || answer.find(end) == answer.npos)) {
      std::size_t size = co_await client.stream.async_read_some(asio::buffer(part), token);
      answer.append(part, size);
    }
    co_return answer;
  }
  std::string Exchange(TlsClient& client, std::string bytes) {
    RunToEnd(loop_, Open(client));
    if (client.error) return client.error.message();
    RunToEnd(loop_, Send(client, std::move(bytes)));
    return RunToEnd(loop_, Read(client));
  }
  std::string Exchange(std::string bytes) {
    TlsClient client(loop_, context_);
    return Exchange(client, std::move(bytes));
  }
  Task<std::string> TalkPlainly(std::string bytes) {
    tcp::socket socket(loop_.context());
    HangUpLater fail(loop_, socket, 20s);
    co_await socket.async_connect(Place(), asio::use_awaitable);
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await asio::async_write(socket, asio::buffer(bytes), token);
    std::string answer;
    char part[4096];
    while (!error) {
      std::size_t size = co_await socket.async_read_some(asio::buffer(part), token);
      answer.append(part, size);
    }
    co_return answer;
  }
  Task<> Leave(TlsClient& client, bool is_announced) {
    auto token = asio::redirect_error(asio::use_awaitable, client.error);
    if (is_announced) co_await client.stream.async_shutdown(token);
    client.stream.next_layer().close();
  }
  Task<> AskInto(int& answered) {
    TlsClient client(loop_, context_);
    co_await Open(client);
    std::string request = kClosing;
    co_await Send(client, std::move(request));
    std::string answer = co_await Read(client);
    if (answer.starts_with("HTTP/1.1 200 ")) ++answered;
  }
  void RunUntil(const std::function<bool()>& is_reached) {
    SteadyTime deadline = loop_.SteadyNow() + 20s;
    while (!is_reached() && loop_.SteadyNow() < deadline) RunToEnd(loop_, loop_.SleepFor(1ms));
    EXPECT_TRUE(is_reached());
  }

  Loop loop_;
  CertificatesForTest made_;
  CertificateFiles files_{made_.Path("server.pem"), made_.Path("server.key")};
  asio::ssl::context context_{asio::ssl::context::tls_client};
  std::shared_ptr<TlsPieces> pieces_ = std::make_shared<TlsPieces>();
  std::optional<HttpServer> server_;
  TaskGroup tasks_{loop_, log::Logger("test")};
};

TEST_F(HttpTlsTest, RequestsAreAnsweredAsWithoutTls) {  // TLS-1
  log::Capture log;
  Start();
  EXPECT_EQ(log.Count("Serving on https://127.0.0.1:"), 1);
  EXPECT_THAT(Exchange(std::string("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nHEAD /22 HTTP/1.1\r\nHost: x\r\n\r\n") +
                       kClosing),
              AllOf(HasSubstr("GET /1 from 127.0.0.1"), HasSubstr("Content-Length: 23\r\n"),
                    EndsWith("GET /last from 127.0.0.1")))
      << "all of them in one record";
  EXPECT_THAT(Exchange("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
}

TEST_F(HttpTlsTest, AConnectionServesRequestsOneAfterAnother) {  // TLS-1
  Start();
  TlsClient client(loop_, context_);
  RunToEnd(loop_, Open(client));
  for (std::string path : {"/a", "/b", "/c"}) {
    RunToEnd(loop_, Send(client, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_THAT(RunToEnd(loop_, Read(client, " from ")), HasSubstr("GET " + path));
  }
}

TEST_F(HttpTlsTest, AnAnswerOfManyRecordsIsWhole) {  // TLS-1
  Start();
  std::string answer = Exchange("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, std::size_t{20} << 20);
}

TEST_F(HttpTlsTest, AnEndIsAnnounced) {  // TLS-9
  Start();
  TlsClient client(loop_, context_);
  Exchange(client, kClosing);
  EXPECT_EQ(client.error, asio::error::eof) << "else stream_truncated";
}

TEST_F(HttpTlsTest, AClientThatHasSentAllStillGetsItsAnswer) {  // TLS-9
  Start();
  TlsClient client(loop_, context_);
  RunToEnd(loop_, Open(client));
  RunToEnd(loop_, Send(client, kClosing));
  SSL_shutdown(client.stream.native_handle());
  EXPECT_THAT(RunToEnd(loop_, Read(client)), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpTlsTest, AStreamIsSentAsItComesAndEnds) {  // TLS-1
  Start();
  TlsClient client(loop_, context_);
  RunToEnd(loop_, Open(client));
  RunToEnd(loop_, Send(client, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
  for (const char* piece : {"one", "two"}) {
    pieces_->Send(piece);
    EXPECT_THAT(RunToEnd(loop_, Read(client, piece)), EndsWith(std::string("3\r\n") + piece + "\r\n"));
  }
  pieces_->Send("end");
  EXPECT_EQ(RunToEnd(loop_, Read(client)), "0\r\n\r\n");
  EXPECT_EQ(client.error, asio::error::eof);
  client.stream.next_layer().close();
  RunUntil([&] { return pieces_.use_count() == 1; });
}

TEST_F(HttpTlsTest, AStreamEndsWithItsClient) {  // TLS-9
  Start();
  for (bool is_announced : {true, false}) {
    TlsClient client(loop_, context_);
    RunToEnd(loop_, Open(client));
    RunToEnd(loop_, Send(client, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
    RunUntil([&] { return pieces_.use_count() > 1; });
    tasks_.Spawn("leave", Leave(client, is_announced));
    RunUntil([&] { return pieces_.use_count() == 1 && tasks_.size() == 0; });
  }
}

TEST_F(HttpTlsTest, AStopEndsStreamsAndHandshakes) {  // TLS-1
  Start();
  TlsClient client(loop_, context_);
  RunToEnd(loop_, Open(client));
  RunToEnd(loop_, Send(client, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
  RunUntil([&] { return pieces_.use_count() > 1; });
  tcp::socket silent(loop_.context());
  silent.connect(Place());
  RunToEnd(loop_, server_->Stop());
  EXPECT_EQ(pieces_.use_count(), 1);
}

TEST_F(HttpTlsTest, OldVersionsAreRefused) {  // TLS-6
  Start();
  for (int version : {TLS1_VERSION, TLS1_1_VERSION}) {
    asio::ssl::context old(asio::ssl::context::tls_client);
    SSL_CTX_set_security_level(old.native_handle(), 0);
    SSL_CTX_set_min_proto_version(old.native_handle(), version);
    SSL_CTX_set_max_proto_version(old.native_handle(), version);
    TlsClient client(loop_, old);
    EXPECT_THAT(Exchange(client, kClosing), HasSubstr("alert protocol version"));
  }
  for (int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    asio::ssl::context one(asio::ssl::context::tls_client);
    SSL_CTX_set_min_proto_version(one.native_handle(), version);
    SSL_CTX_set_max_proto_version(one.native_handle(), version);
    TlsClient client(loop_, one);
    EXPECT_THAT(Exchange(client, kClosing), StartsWith("HTTP/1.1 200 "));
  }
}

TEST_F(HttpTlsTest, TheProtocolIsHttp11) {  // TLS-6
  Start();
  auto chosen = [this](std::string offered) {
    TlsClient client(loop_, context_);
    SSL_set_alpn_protos(client.stream.native_handle(), reinterpret_cast<const unsigned char*>(offered.data()),
                        static_cast<unsigned>(offered.size()));
    RunToEnd(loop_, Open(client));
    if (client.error) return client.error.message();
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(client.stream.native_handle(), &name, &size);
    return std::string(reinterpret_cast<const char*>(name), size);
  };
  EXPECT_EQ(chosen("\x02h2\x08http/1.1"), "http/1.1");
  EXPECT_THAT(chosen("\x02h2"), HasSubstr("no application protocol"));
}

TEST_F(HttpTlsTest, RenegotiationIsRefused) {  // TLS-6
  Start();
  asio::ssl::context old(asio::ssl::context::tls_client);
  SSL_CTX_set_max_proto_version(old.native_handle(), TLS1_2_VERSION);
  TlsClient client(loop_, old);
  RunToEnd(loop_, Open(client));
  ASSERT_FALSE(client.error);
  SSL_renegotiate(client.stream.native_handle());
  RunToEnd(loop_, Send(client, kClosing));
  RunToEnd(loop_, Read(client));
  EXPECT_THAT(client.error.message(), HasSubstr("no renegotiation"));
}

TEST_F(HttpTlsTest, PlainHttpIsAnsweredThatItHasToBeHttps) {  // TLS-8
  Start();
  EXPECT_THAT(
      RunToEnd(loop_, TalkPlainly("GET / HTTP/1.1\r\nHost: x\r\n\r\n")),
      AllOf(StartsWith("HTTP/1.1 400 Bad Request\r\n"), HasSubstr("Connection: close"),
            EndsWith(
                "\r\n\r\nThis port speaks HTTPS only: begin the URL with https:// in place of http://\n")));
}

TEST_F(HttpTlsTest, TlsToAPlainServerIsLogged) {  // TLS-8
  Start({}, false);
  log::Capture log;
  EXPECT_THAT(Exchange(kClosing), HasSubstr("wrong version number"));
  EXPECT_EQ(log.Count("127.0.0.1 speaks TLS to the web server, which serves plain HTTP"), 1);
}

TEST_F(HttpTlsTest, FailedHandshakesAreLoggedWithTheirReason) {  // TLS-8
  Start();
  log::Capture log;
  context_.set_verify_mode(asio::ssl::verify_peer);
  EXPECT_THAT(Exchange(kClosing), HasSubstr("certificate verify failed"));
  RunUntil([&] { return log.Count("A TLS handshake with 127.0.0.1 failed: ") == 1; });
}

TEST_F(HttpTlsTest, SlowHandshakesAreHungUpOn) {  // TLS-7
  Start({.request_time = 50ms});
  EXPECT_EQ(RunToEnd(loop_, TalkPlainly("")), "");
  EXPECT_EQ(RunToEnd(loop_, TalkPlainly("\x16")), "");
  EXPECT_EQ(RunToEnd(loop_, TalkPlainly(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11))),
            "");
}

TEST_F(HttpTlsTest, SilentHandshakesMakeWayForOthers) {  // TLS-7
  Start({.connections = 2});
  std::vector<tcp::socket> silent;
  for (int i = 0; i < 20; ++i) {
    silent.emplace_back(loop_.context()).connect(Place());
    if (i % 2 == 0) asio::write(silent.back(), asio::buffer("\x16", 1));
  }
  SteadyTime start = loop_.SteadyNow();
  EXPECT_THAT(Exchange(kClosing), StartsWith("HTTP/1.1 200 "));
  EXPECT_LT(loop_.SteadyNow() - start, HttpLimits().request_time);
}

TEST_F(HttpTlsTest, ManyHandshakesAtATimeTakeTurns) {  // TLS-7
  Start();
  int answered = 0;
  SteadyTime start = loop_.SteadyNow();
  for (int i = 0; i < 100; ++i) tasks_.Spawn("ask", AskInto(answered));
  RunUntil([&] { return answered == 100; });
  EXPECT_GE(loop_.SteadyNow() - start, 99ms) << "a millisecond between two";
}

TEST_F(HttpTlsTest, OpenConnectionsOutliveTheirCertificate) {  // TLS-3
  Start();
  TlsClient old(loop_, context_);
  RunToEnd(loop_, Open(old));
  RunToEnd(loop_, Send(old, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
  fs::rename(made_.Path("client.pem"), files_.cert);
  fs::rename(made_.Path("client.key"), files_.key);
  auto name = [this] {
    TlsClient client(loop_, context_);
    RunToEnd(loop_, Open(client));
    return client.CommonName();
  };
  RunUntil([&] { return name() == "the client"; });
  pieces_->Send("still here");
  EXPECT_THAT(RunToEnd(loop_, Read(old, "here")), HasSubstr("still here"));
  EXPECT_EQ(old.CommonName(), "the server");
}

TEST_F(HttpTlsTest, WithoutAUsableCertificateNothingIsServed) {  // TLS-2
  files_.key = made_.Path("client.key");
  try {
    Start();
    FAIL() << "it has started";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), AllOf(StartsWith("webapp.tls: "), HasSubstr(files_.key)));
  }
}

}  // namespace
}  // namespace nodepool::net
