#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "async/loop.h"
#include "async/task_group.h"
#include "base/error.h"
#include "base/testing/test_environment.h"
#include "net/http/connection.h"
#include "net/http/http_client.h"
#include "net/http/http_server.h"

namespace nodepool::net {

// An authority, `ca.pem`; a server's certificate for the name `localhost`, `server.pem` with
// `server.key`; a client's, `client.pem` with `client.key`. The destructor deletes them.
class CertificatesForTest {
 public:
  CertificatesForTest() {
    std::string command = "cd '" + folder_.path() + R"(' && ( set -e
key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
openssl req -x509 $key -days 30 -keyout ca.key -out ca.pem -subj '/CN=test authority'
echo 'subjectAltName = DNS:localhost' > names
for one in server client; do
  openssl req $key -keyout $one.key -out $one.csr -subj "/CN=the $one"
  openssl x509 -req -in $one.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile names -out $one.pem
done ) > log 2>&1)";
    if (std::system(command.c_str()) != 0)
      throw std::runtime_error("cannot make certificates, see " + folder_.path());
  }
  CertificatesForTest(const CertificatesForTest&) = delete;
  CertificatesForTest& operator=(const CertificatesForTest&) = delete;

  std::string Path(const std::string& name) const { return folder_ / name; }

 private:
  testing::TemporaryFolder folder_;
};

// Answers every connection with 200 and the name in the client's certificate.
class TlsServerForTest {
 public:
  TlsServerForTest(Loop& loop, const CertificatesForTest& files, bool wants_certificate)
      : tasks_(loop, log::Logger("test")),
        context_(boost::asio::ssl::context::tls_server),
        acceptor_(loop.context(), {boost::asio::ip::address_v4::loopback(), 0}) {
    context_.use_certificate_chain_file(files.Path("server.pem"));
    context_.use_private_key_file(files.Path("server.key"), boost::asio::ssl::context::pem);
    context_.load_verify_file(files.Path("ca.pem"));
    if (wants_certificate) {
      context_.set_verify_mode(boost::asio::ssl::verify_peer | boost::asio::ssl::verify_fail_if_no_peer_cert);
    }
    tasks_.Spawn("TLS server", Serve());
  }
  Task<> Stop() { return tasks_.Stop(); }
  int port() const { return acceptor_.local_endpoint().port(); }

 private:
  using Stream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

  Task<> Serve() {
    while (true) {
      boost::asio::ip::tcp::socket socket = co_await acceptor_.async_accept(boost::asio::use_awaitable);
      auto stream = std::make_shared<Stream>(std::move(socket), context_);
      tasks_.Spawn("TLS connection", Converse(stream));
    }
  }
  static Task<> Converse(std::shared_ptr<Stream> stream) {
    boost::system::error_code error;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
    co_await stream->async_handshake(boost::asio::ssl::stream_base::server, token);
    if (error) co_return;
    char request[4096];
    co_await stream->async_read_some(boost::asio::buffer(request), token);
    if (error) co_return;
    std::string name = ClientName(*stream);
    std::string answer =
        "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(name.size()) + "\r\n\r\n" + name;
    co_await boost::asio::async_write(*stream, boost::asio::buffer(answer), token);
  }
  static std::string ClientName(Stream& stream) {
    X509* certificate = SSL_get1_peer_certificate(stream.native_handle());
    if (certificate == nullptr) return "nobody";
    char name[100] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
    X509_free(certificate);
    return name;
  }

  TaskGroup tasks_;
  boost::asio::ssl::context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
};

}  // namespace nodepool::net

extern char** environ;

namespace nodepool::net {

// A real sshd on the loopback address with new host keys; stopped by the destructor. Needs root, as
// sshd does, for its privilege separation directory.
class SshServerForTest {
 public:
  // `key_types` as ssh-keygen names them with their length: "ed25519", "rsa-2048", "ecdsa-256" ...
  // Port 0 selects a free one.
  explicit SshServerForTest(const std::vector<std::string>& key_types, int port = 0)
      : port_(port == 0 ? testing::FreePort() : port) {
    ::mkdir("/run/sshd", 0755);
    std::ofstream config(directory_ / "config");
    config << "ListenAddress 127.0.0.1:" << port_ << "\nPidFile none\nUsePAM no\nMaxStartups 200\n";
    for (const std::string& type : key_types) config << "HostKey " << MakeKey(type) << "\n";
    config.close();
  }
  ~SshServerForTest() { Stop(); }
  SshServerForTest(const SshServerForTest&) = delete;
  SshServerForTest& operator=(const SshServerForTest&) = delete;

  void Start() { process_ = Spawn({"/usr/sbin/sshd", "-D", "-e", "-f", (directory_ / "config").string()}); }
  void Stop() {
    if (process_ <= 0) return;
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

  int port() const { return port_; }
  // "<type> <base64>" of the key of that type.
  const std::string& public_key(const std::string& type) const { return public_keys_.at(type); }

 private:
  std::string MakeKey(const std::string& type) {
    std::string file = (directory_ / type).string();
    auto dash = type.find('-');
    std::vector<std::string> command = {"/usr/bin/ssh-keygen", "-q", "-N", "", "-f", file, "-t",
                                        type.substr(0, dash)};
    if (dash != std::string::npos) command.insert(command.end(), {"-b", type.substr(dash + 1)});
    int status = 0;
    ::waitpid(Spawn(command), &status, 0);
    if (status != 0) throw std::runtime_error("ssh-keygen failed");
    std::ifstream published(file + ".pub");
    std::string kind, base64;
    published >> kind >> base64;
    public_keys_[type] = kind + " " + base64;
    return file;
  }

  static pid_t Spawn(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int descriptor : {0, 1, 2}) {
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0);
    }
    pid_t process = 0;
    int error = posix_spawn(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error(command[0] + " cannot be started");
    return process;
  }

  int port_;
  testing::TemporaryFolder temporary_;
  std::filesystem::path directory_ = temporary_.path();
  std::map<std::string, std::string> public_keys_;
  pid_t process_ = 0;
};

// A client on a loop of its own.
class CurlFixture : public ::testing::Test {
 protected:
  HttpReply Send(HttpCall call) { return RunToEnd(loop_, client_.Send(std::move(call))); }
  // The error of a call that must fail.
  HttpError Failure(HttpCall call) {
    try {
      Send(std::move(call));
    } catch (const HttpError& error) {
      return error;
    }
    ADD_FAILURE() << "there was an answer";
    return HttpError(Verdict::kFail, "", false);
  }

  Loop loop_;
  BlockingPool pool_{1};
  CurlClient client_{loop_, pool_, "nodepool/test"};
};

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
