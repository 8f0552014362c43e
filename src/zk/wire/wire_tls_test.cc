// TLS against a real Apache ZooKeeper (coordination.md 2.3).
#include "zk/wire/wire_tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>

#include "zk/testing/zookeeper_server.h"
#include "zk/wire/wire_for_test.h"

namespace nodepool::zk {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::ZooKeeperServer;

class WireTlsTest : public ::testing::Test, protected RealTime {
 protected:
  static void SetUpTestSuite() {
    server = new ZooKeeperServer({.tls = true});
    server->Start();
  }
  static void TearDownTestSuite() {
    delete server;
    server = nullptr;
  }

  WireOptions Options(std::optional<TlsFiles> files) {
    WireOptions options;
    options.servers = {server->tls_address()};
    options.tls = std::move(files);
    return options;
  }

  // The first warning of a client that never connects.
  std::string Complaint(WireOptions options) {
    log::Capture capture;
    TestClient client(*this, std::move(options));
    EXPECT_TRUE(Until([&] { return capture.Count("Retrying zookeeper connection") > 0; }));
    EXPECT_EQ(client->state(), SessionState::kConnecting);
    for (const auto& record : capture.records()) {
      if (record.text.starts_with("Retrying")) return record.text;
    }
    return "";
  }

  static ZooKeeperServer* server;
};

ZooKeeperServer* WireTlsTest::server = nullptr;

// coordination.17.41: the certificate names another host, which is accepted.
TEST_F(WireTlsTest, ClientCertificateAndWrongHostNameAreAccepted) {
  TestClient client(*this, Options(server->client_files()));
  EXPECT_TRUE(Await(client->Create("/tls", std::string(300'000, 'x'), CreateMode::kPersistent)));
  EXPECT_EQ(Await(client->Get("/tls"))->data.size(), 300'000u);
  std::vector<Task<Result<NodeData>>> reads;
  for (int i = 0; i < 50; ++i) reads.push_back(client->Get("/tls"));
  for (auto& read : reads) EXPECT_EQ(Await(std::move(read))->data.size(), 300'000u);
}

// coordination.17.41
TEST_F(WireTlsTest, ServerOfAnUnknownAuthorityIsRefused) {
  TlsFiles files = server->client_files();
  files.ca = server->stranger_files().ca;
  EXPECT_THAT(Complaint(Options(files)),
              HasSubstr("the server's certificate is not signed by zookeeper-tls.ca (" + files.ca + "): "));
}

TEST_F(WireTlsTest, ServerRefusesAStrangersCertificate) {
  TlsFiles files = server->stranger_files();
  files.ca = server->client_files().ca;
  EXPECT_THAT(Complaint(Options(files)),
              HasSubstr("the server does not trust zookeeper-tls.cert (" + files.cert + "): "));
}

TEST_F(WireTlsTest, PlainClientOnATlsPortGetsAnExplanation) {
  EXPECT_THAT(Complaint(Options(std::nullopt)), HasSubstr("TLS"));
}

TEST_F(WireTlsTest, TlsClientOnAPlainPortDoesNotHang) {
  WireOptions options = Options(server->client_files());
  options.servers = {server->address()};
  options.connect_timeout = milliseconds(500);
  EXPECT_NE(Complaint(options), "");
}

TEST_F(WireTlsTest, UnusableFilesAreNamed) {
  auto complaint = [&](TlsFiles files) -> std::string {
    try {
      WireClient client(loop, random, Options(std::move(files)));
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kInvalid);
      return error.message();
    }
    return "";
  };
  TlsFiles files = server->client_files();
  files.cert = "/no/such/cert.pem";
  EXPECT_THAT(complaint(files), HasSubstr("cannot read the cert file \"/no/such/cert.pem\": No such file"));
  files = server->client_files();
  files.key = server->stranger_files().key;
  EXPECT_THAT(complaint(files), HasSubstr("key"));
  files = server->client_files();
  files.ca = "/dev/null";
  EXPECT_THAT(complaint(files), HasSubstr("ca file \"/dev/null\": it is not a regular file"));
  EXPECT_THROW(WireClient(loop, random, WireOptions{}), Error);
}

TEST(TlsFaultTest, AServerWhoseCertificateIsOutOfDateIsSaidToBeSo) {
  TlsFiles files{.cert = "c", .key = "k", .ca = "a"};
  auto fault = [](unsigned long code) {
    return boost::system::error_code(static_cast<int>(code), boost::asio::error::get_ssl_category());
  };
  auto refused = fault(ERR_PACK(ERR_LIB_SSL, 0, SSL_R_CERTIFICATE_VERIFY_FAILED));
  EXPECT_EQ(ExplainTlsFault(refused, X509_V_ERR_CERT_HAS_EXPIRED, files),
            "the server's certificate is of no use: certificate has expired");
  EXPECT_EQ(ExplainTlsFault(fault(ERR_PACK(ERR_LIB_SSL, 0, SSL_R_WRONG_VERSION_NUMBER)), X509_V_OK, files),
            std::nullopt);
  EXPECT_EQ(ExplainTlsFault(boost::asio::error::eof, X509_V_OK, files), std::nullopt);
}

}  // namespace
}  // namespace nodepool::zk
