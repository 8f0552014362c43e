// TLS against a real Apache ZooKeeper (coordination.md 2.3).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

  // The first complaint that a client logs which never gets in.
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
  EXPECT_THAT(Complaint(Options(files)), HasSubstr("certificate verify failed"));
}

TEST_F(WireTlsTest, ServerRefusesAStrangersCertificate) {
  TlsFiles files = server->stranger_files();
  files.ca = server->client_files().ca;
  EXPECT_THAT(Complaint(Options(files)), HasSubstr("127.0.0.1:"));
}

TEST_F(WireTlsTest, PlainClientOnATlsPortIsToldSo) {
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
  EXPECT_THAT(complaint(files), HasSubstr("ca file \"/dev/null\": it is empty"));
  EXPECT_THROW(WireClient(loop, random, WireOptions{}), Error);
}

}  // namespace
}  // namespace nodepool::zk
