// The HTTP client over TLS, HTTP/2 and proxies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <fstream>

#include "async/loop.h"
#include "base/testing/test_environment.h"
#include "net/http/http_client.h"
#include "net/servers_for_test.h"

namespace nodepool::net {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CurlTlsTest : public CurlFixture {
 protected:
  void SetUp() override {
    for (const char* name :
         {"http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"}) {
      ::unsetenv(name);
    }
    tls_.ca_path = files().Path("ca.pem");
  }
  void TearDown() override {
    if (server_) RunToEnd(loop_, server_->Stop());
  }
  // Created once: the tests do not change it.
  static const CertificatesForTest& files() {
    static const CertificatesForTest made;
    return made;
  }

  void Start(bool wants_certificate = false) { server_.emplace(loop_, files(), wants_certificate); }
  HttpCall Get(const std::string& host) {
    HttpCall call;
    call.url = "https://" + host + ":" + std::to_string(server_->port()) + "/";
    call.tls = std::make_shared<TlsSettings>(tls_);
    return call;
  }

  TlsSettings tls_;
  std::optional<TlsServerForTest> server_;
};

TEST_F(CurlTlsTest, AnAuthorityOfOurOwnIsTrusted) {
  Start();
  EXPECT_EQ(Send(Get("localhost")).body, "nobody");
}

TEST_F(CurlTlsTest, AnUnknownAuthorityIsNotTrusted) {
  Start();
  tls_.ca_path.clear();
  HttpError error = Failure(Get("localhost"));
  EXPECT_EQ(error.verdict(), Verdict::kInvalid);
  EXPECT_FALSE(error.may_have_been_seen());
  EXPECT_THAT(error.message(), HasSubstr("certificate"));
  EXPECT_THROW(Send(Get("localhost")), UntrustedServer);
}

TEST_F(CurlTlsTest, AnotherHostsCertificateIsRefused) {
  Start();
  HttpError error = Failure(Get("127.0.0.1"));
  EXPECT_EQ(error.verdict(), Verdict::kInvalid);
  EXPECT_THAT(error.message(), HasSubstr("127.0.0.1"));
  try {
    Send(Get("127.0.0.1"));
  } catch (const UntrustedServer&) {
    FAIL() << "its authority is known";
  } catch (const HttpError&) {
  }
}

TEST_F(CurlTlsTest, WithoutVerificationEveryServerIsTrusted) {
  Start();
  tls_.ca_path.clear();
  tls_.verifies_peer = false;
  EXPECT_EQ(Send(Get("127.0.0.1")).status, 200);
}

TEST_F(CurlTlsTest, SendsTheClientCertificate) {
  Start(true);
  EXPECT_NE(Failure(Get("localhost")).verdict(), Verdict::kCancelled);
  tls_.certificate_path = files().Path("client.pem");
  tls_.key_path = files().Path("client.key");
  EXPECT_EQ(Send(Get("localhost")).body, "the client");
}

// K8S-34
TEST_F(CurlTlsTest, CertificatesMayBeText) {
  auto content = [](const std::string& name) {
    std::ifstream file(files().Path(name));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  tls_ = TlsSettings();
  tls_.ca_pem = content("ca.pem");
  tls_.certificate_pem = content("client.pem");
  tls_.key_pem = content("client.key");
  Start(true);
  EXPECT_EQ(Send(Get("localhost")).body, "the client");
  tls_.ca_pem = content("client.pem");
  EXPECT_EQ(Failure(Get("localhost")).verdict(), Verdict::kInvalid);
}

// K8S-42
TEST_F(CurlTlsTest, TheServersNameMayBeAnotherThanItsAddress) {
  Start();
  EXPECT_EQ(Failure(Get("127.0.0.1")).verdict(), Verdict::kInvalid);
  tls_.server_name = "localhost";
  EXPECT_EQ(Send(Get("127.0.0.1")).body, "nobody");
  tls_.server_name = "elsewhere";
  EXPECT_EQ(Failure(Get("localhost")).verdict(), Verdict::kInvalid);
}

// Connections are shared only by calls with the same certificate.
TEST_F(CurlTlsTest, ConnectionsWithAnotherCertificateAreNotUsed) {
  Start();
  EXPECT_EQ(Send(Get("localhost")).body, "nobody");
  tls_.certificate_path = files().Path("client.pem");
  tls_.key_path = files().Path("client.key");
  EXPECT_EQ(Send(Get("localhost")).status, 200);
  tls_ = TlsSettings();
  EXPECT_EQ(Failure(Get("localhost")).verdict(), Verdict::kInvalid);
}

TEST_F(CurlTlsTest, FilesThatAreMissingAreNamed) {
  Start();
  TlsSettings good = tls_;
  tls_.ca_path = "/nowhere/ca.pem";
  HttpError no_authority = Failure(Get("localhost"));
  EXPECT_EQ(no_authority.verdict(), Verdict::kInvalid);
  EXPECT_THAT(no_authority.message(), HasSubstr("/nowhere/ca.pem"));
  tls_ = good;
  tls_.certificate_path = "/nowhere/client.pem";
  HttpError no_certificate = Failure(Get("localhost"));
  EXPECT_EQ(no_certificate.verdict(), Verdict::kInvalid);
  EXPECT_THAT(no_certificate.message(), HasSubstr("/nowhere/client.pem"));
}

// The server accepts the connection, and the handshake never begins.
TEST_F(CurlTlsTest, AHandshakeThatDoesNotEnd) {
  asio::ip::tcp::acceptor silent(loop_.context(), {asio::ip::address_v4::loopback(), 0});
  HttpCall call;
  call.url = "https://localhost:" + std::to_string(silent.local_endpoint().port()) + "/";
  call.timeouts.connect = 100ms;
  call.timeouts.answer = 1h;
  HttpError error = Failure(std::move(call));
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_FALSE(error.may_have_been_seen());
}

// --- HTTP/2, with a server that speaks nothing else --------------------------------------

class Http2Test : public CurlTlsTest {
 protected:
  void SetUp() override {
    CurlTlsTest::SetUp();
    const std::string program = "/usr/sbin/nghttpd";
    if (!std::filesystem::exists(program)) GTEST_SKIP() << "package nghttp2-server is not installed";
    std::ofstream(files().Path("page.txt")) << "over HTTP/2";
    port_ = testing::FreePort();
    pid_ = Spawn({program, "-a", "127.0.0.1", "--echo-upload", "-d", files().Path(""), std::to_string(port_),
                  files().Path("server.key"), files().Path("server.pem")});
    ASSERT_TRUE(IsUp());
  }
  void TearDown() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    CurlTlsTest::TearDown();
  }

  static pid_t Spawn(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t pid = 0;
    return ::posix_spawn(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0 ? pid : 0;
  }
  bool IsUp() {
    for (SteadyTime end = loop_.SteadyNow() + 10s; loop_.SteadyNow() < end;) {
      asio::ip::tcp::socket socket(loop_.context());
      boost::system::error_code error;
      socket.connect({asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port_)}, error);
      if (!error) return true;
      RunToEnd(loop_, loop_.SleepFor(20ms));
    }
    return false;
  }
  HttpCall Ask(const std::string& path) {
    HttpCall call;
    call.url = "https://localhost:" + std::to_string(port_) + path;
    call.tls = std::make_shared<TlsSettings>(tls_);
    return call;
  }

  int port_ = 0;
  pid_t pid_ = 0;
};

TEST_F(Http2Test, IsSpokenWhereItIsOffered) {
  HttpReply reply = Send(Ask("/page.txt"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "over HTTP/2");
  EXPECT_THAT(reply.Header("server"), HasSubstr("nghttpd"));
  EXPECT_EQ(Send(Ask("/missing")).status, 404);
}

TEST_F(Http2Test, AFileIsUploaded) {
  std::string contents;
  for (int i = 0; i < 3'000'000; ++i) contents += static_cast<char>(std::int64_t{i} * 7919 >> 5);
  std::ofstream(files().Path("upload")) << contents;
  HttpCall call = Ask("/page.txt");
  call.method = "PUT";
  call.upload = HttpUpload{files().Path("upload"), {}};
  EXPECT_TRUE(Send(std::move(call)).body == contents);
}

TEST_F(Http2Test, ManyCallsShareAConnection) {
  TaskGroup tasks(loop_, log::Logger("test"));
  int good = 0;
  auto ask = [](HttpClient& client, HttpCall call, int& good) -> Task<> {
    HttpReply reply = co_await client.Send(std::move(call));
    good += reply.body == "over HTTP/2";
  };
  for (int i = 0; i < 50; ++i) tasks.Spawn("ask", ask(client_, Ask("/page.txt"), good));
  RunToEnd(loop_, tasks.Join());
  EXPECT_EQ(good, 50);
}

// --- Proxies from the environment ----------------------------------------------------------

// Forwards connections, or refuses to, and records the requests.
class Proxy {
 public:
  Proxy(Loop& loop, std::string refusal)
      : refusal_(std::move(refusal)),
        tasks_(loop, log::Logger("test")),
        acceptor_(loop.context(), {asio::ip::address_v4::loopback(), 0}) {
    tasks_.Spawn("proxy", Serve());
  }
  Task<> Stop() { return tasks_.Stop(); }
  std::string Url() const { return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }
  const std::vector<std::string>& asked() const { return asked_; }

 private:
  using Socket = std::shared_ptr<asio::ip::tcp::socket>;

  Task<> Serve() {
    while (true) {
      asio::ip::tcp::socket accepted = co_await acceptor_.async_accept(asio::use_awaitable);
      auto socket = std::make_shared<asio::ip::tcp::socket>(std::move(accepted));
      tasks_.Spawn("proxied", Carry(socket));
    }
  }
  Task<> Carry(Socket from) {
    asio::streambuf head;
    co_await asio::async_read_until(*from, head, "\r\n\r\n", asio::use_awaitable);
    std::istream text(&head);
    std::string method, target;
    text >> method >> target;
    asked_.push_back(method + " " + target);
    std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nproxied";
    if (method == "CONNECT") answer = "HTTP/1.1 200 Go ahead\r\n\r\n";
    if (!refusal_.empty()) answer = refusal_;
    co_await asio::async_write(*from, asio::buffer(answer), asio::use_awaitable);
    if (method != "CONNECT" || !refusal_.empty()) co_return;
    auto port = static_cast<std::uint16_t>(std::stoi(target.substr(target.find(':') + 1)));
    auto to = std::make_shared<asio::ip::tcp::socket>(acceptor_.get_executor());
    asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
    co_await to->async_connect(endpoint, asio::use_awaitable);
    tasks_.Spawn("there", Copy(from, to));
    tasks_.Spawn("back", Copy(to, from));
  }
  static Task<> Copy(Socket from, Socket to) {
    char bytes[4096];
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    while (true) {
      std::size_t count = co_await from->async_read_some(asio::buffer(bytes), token);
      if (!error) co_await asio::async_write(*to, asio::buffer(bytes, count), token);
      if (error) break;
    }
    to->shutdown(asio::ip::tcp::socket::shutdown_send, error);
  }

  std::string refusal_;
  TaskGroup tasks_;
  asio::ip::tcp::acceptor acceptor_;
  std::vector<std::string> asked_;
};

class ProxyTest : public CurlTlsTest {
 protected:
  void TearDown() override {
    for (const char* name : {"http_proxy", "https_proxy", "no_proxy"}) ::unsetenv(name);
    if (proxy_) RunToEnd(loop_, proxy_->Stop());
    CurlTlsTest::TearDown();
  }
  void StartProxy(const char* variable, std::string refusal = "") {
    proxy_.emplace(loop_, std::move(refusal));
    ::setenv(variable, proxy_->Url().c_str(), 1);
  }
  std::optional<Proxy> proxy_;
};

TEST_F(ProxyTest, OfHttpGetsTheRequest) {
  StartProxy("http_proxy");
  HttpCall call;
  call.url = "http://cloud.example/v3";
  EXPECT_EQ(Send(std::move(call)).body, "proxied");
  EXPECT_THAT(proxy_->asked(), ElementsAre("GET http://cloud.example/v3"));
}

TEST_F(ProxyTest, OfHttpsForwardsTheConnection) {
  Start();
  StartProxy("https_proxy");
  HttpReply reply = Send(Get("localhost"));
  EXPECT_EQ(reply.body, "nobody");
  EXPECT_EQ(reply.Header("content-length"), "6") << "the headers are the server's";
  EXPECT_THAT(proxy_->asked(), ElementsAre("CONNECT localhost:" + std::to_string(server_->port())));
}

// K8S-42
TEST_F(ProxyTest, OfTheCallWinsOverThatOfTheEnvironment) {
  Start();
  StartProxy("no_such_proxy");
  ::setenv("https_proxy", "http://127.0.0.1:1", 1);
  ::setenv("no_proxy", "localhost", 1);
  HttpCall call = Get("localhost");
  call.proxy = proxy_->Url();
  EXPECT_EQ(Send(std::move(call)).body, "nobody");
  EXPECT_THAT(proxy_->asked(), ElementsAre("CONNECT localhost:" + std::to_string(server_->port())));
  ::unsetenv("no_such_proxy");
}

TEST_F(ProxyTest, IsNotUsedWhereTheEnvironmentSaysSo) {
  Start();
  StartProxy("https_proxy");
  ::setenv("no_proxy", "example.com,localhost", 1);
  EXPECT_EQ(Send(Get("localhost")).status, 200);
  EXPECT_TRUE(proxy_->asked().empty());
}

TEST_F(ProxyTest, MayRefuse) {
  Start();
  StartProxy("https_proxy", "HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n");
  HttpError error = Failure(Get("localhost"));
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_FALSE(error.may_have_been_seen());
  EXPECT_THAT(error.message(), HasSubstr("407"));
}

// The proxy answers, the server behind it does not: the error is not that of an answer that stopped
// half way.
TEST_F(ProxyTest, TheTimeOutIsThatOfTheServerBehindIt) {
  asio::ip::tcp::acceptor silent(loop_.context(), {asio::ip::address_v4::loopback(), 0});
  StartProxy("https_proxy");
  HttpCall call;
  call.url = "https://localhost:" + std::to_string(silent.local_endpoint().port()) + "/";
  call.timeouts.connect = 300ms;
  call.timeouts.stall = 10ms;
  call.timeouts.answer = 1h;
  HttpError error = Failure(std::move(call));
  EXPECT_FALSE(error.may_have_been_seen());
  EXPECT_THAT(error.message(), ::testing::Not(HasSubstr("half way")));
}

}  // namespace
}  // namespace nodepool::net
