#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "async/task_group.h"
#include "base/testing/temporary_folder.h"

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
