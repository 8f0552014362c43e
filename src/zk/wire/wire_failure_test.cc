#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <set>
#include <thread>

#include "async/task_group.h"
#include "async/testing/run_ready.h"
#include "zk/testing/zookeeper_server.h"
#include "zk/wire/wire_connection.h"
#include "zk/wire/wire_for_test.h"

namespace nodepool::zk {

// WireClient when servers die, hang and lose state (coordination.md 2.5).

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;
using testing::ZooKeeperEnsemble;
using testing::ZooKeeperServer;

WireOptions OptionsFor(std::vector<HostPort> servers, Duration session_timeout) {
  WireOptions options;
  options.servers = std::move(servers);
  options.session_timeout = session_timeout;
  return options;
}

class WireFailureTest : public ::testing::Test, protected RealTime {
 protected:
  // Lets time pass during which the client under test does not run, as if its process were stopped.
  template <class Predicate>
  static bool WhileStopped(Predicate is_reached) {
    RealTime other;
    return other.Until(is_reached);
  }
};

TEST_F(WireFailureTest, RestartedServerKeepsSessionAndWatchesReportWhatWasMissed) {
  ZooKeeperServer server;
  server.Start();
  TestClient client(*this, OptionsFor({server.address()}, seconds(20)));
  Await(client->Create("/e", "", CreateMode::kEphemeral));
  Await(client->Create("/data", "", CreateMode::kPersistent));
  Await(client->Create("/dir", "", CreateMode::kPersistent));
  Await(client->Create("/same", "", CreateMode::kPersistent));
  EventLog data, missing, children, same, recursive, persistent;
  Await(client->GetAndWatch("/data", data.watcher()));
  Await(client->ExistsAndWatch("/missing", missing.watcher()));
  Await(client->GetChildrenAndWatch("/dir", children.watcher()));
  Await(client->GetAndWatch("/same", same.watcher()));
  Subscription all = Await(client->AddWatch("/", WatchMode::kPersistentRecursive, recursive.watcher()));
  Subscription one = Await(client->AddWatch("/lonely", WatchMode::kPersistent, persistent.watcher()));
  Session session = client->session();

  server.Restart();
  {
    RealTime meanwhile;
    TestClient other(meanwhile, OptionsFor({server.address()}, seconds(20)));
    meanwhile.Await(other->Set("/data", "new", -1));
    meanwhile.Await(other->Create("/missing", "", CreateMode::kPersistent));
    meanwhile.Await(other->Create("/dir/child", "", CreateMode::kPersistent));
  }
  ASSERT_TRUE(Until([&] { return client.states.size() == 3; }));
  EXPECT_THAT(client.states,
              ElementsAre(SessionState::kConnected, SessionState::kSuspended, SessionState::kConnected));
  EXPECT_EQ(client->session(), session);
  EXPECT_EQ(Await(client->Exists("/e"))->ephemeral_owner, session.id);
  EXPECT_THAT(data.events(), ElementsAre("changed /data"));
  EXPECT_THAT(missing.events(), ElementsAre("created /missing"));
  EXPECT_THAT(children.events(), ElementsAre("children /dir"));
  EXPECT_THAT(same.events(), ElementsAre());
  // The catch-up of one-shot watches reaches the lasting ones, too; they get nothing else.
  EXPECT_THAT(recursive.events(), UnorderedElementsAre("changed /data", "created /missing"));

  Await(client->Set("/same", "x", -1));
  Await(client->Create("/lonely", "", CreateMode::kPersistent));
  EXPECT_THAT(same.events(), ElementsAre("changed /same"));
  EXPECT_THAT(persistent.events(), ElementsAre("created /lonely"));
  EXPECT_THAT(recursive.events(), IsSupersetOf({"changed /same", "created /lonely"}));
}

TEST_F(WireFailureTest, OutstandingOperationsFailAndLaterOnesWait) {
  ZooKeeperServer server;
  server.Start();
  TestClient client(*this, OptionsFor({server.address()}, seconds(20)));
  Await(client->Create("/a", "", CreateMode::kPersistent));
  server.Pause();
  auto outstanding = client->Set("/a", "x", -1);
  testing::RunReady(loop);
  server.Kill();
  Error error = ErrorOf(std::move(outstanding));
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_THAT(error.message(), HasSubstr(fmt::format("127.0.0.1:{}", server.port())));
  EXPECT_EQ(client->state(), SessionState::kSuspended);
  auto waiting = client->Get("/a");
  auto cancelled = std::make_unique<Task<Result<Created>>>(client->Create("/c", "", CreateMode::kPersistent));
  cancelled.reset();
  server.Restart();
  EXPECT_TRUE(Await(std::move(waiting)));
  EXPECT_EQ(Await(client->Exists("/c")).error(), Code::kNoNode)
      << "an operation whose caller has stopped waiting is not sent";
}

TEST_F(WireFailureTest, ExpiredSessionIsLostAndANewOneBegins) {
  ZooKeeperServer server;
  server.Start();
  TestClient client(*this, OptionsFor({server.address()}, milliseconds(600)));
  Await(client->Create("/e", "", CreateMode::kEphemeral));
  Await(client->Create("/p", "", CreateMode::kPersistent));
  EventLog once, lasting;
  Await(client->GetAndWatch("/p", once.watcher()));
  Subscription registration =
      Await(client->AddWatch("/", WatchMode::kPersistentRecursive, lasting.watcher()));
  Session session = client->session();
  EXPECT_EQ(session.generation, 1u);

  std::string id = fmt::format("0x{:x}", static_cast<std::uint64_t>(session.id));
  ASSERT_TRUE(WhileStopped([&] { return server.Ask("dump").find(id) == std::string::npos; }));
  ASSERT_TRUE(client.WaitFor(SessionState::kSuspended));
  auto waiting = client->Set("/p", "x", -1);
  ASSERT_TRUE(client.WaitFor(SessionState::kLost));
  EXPECT_EQ(client->session().id, 0);
  EXPECT_EQ(ErrorOf(client->Get("/p")).verdict(), Verdict::kLostSession) << "until a new session is begun";
  EXPECT_EQ(ErrorOf(std::move(waiting)).verdict(), Verdict::kLostSession) << "a write of the old session";
  EXPECT_THAT(once.events(), ElementsAre("none"));
  ASSERT_TRUE(client.WaitFor(SessionState::kConnected));
  EXPECT_THAT(client.states,
              ElementsAre(SessionState::kConnected, SessionState::kSuspended, SessionState::kLost,
                          SessionState::kConnecting, SessionState::kConnected));
  EXPECT_EQ(client->session().generation, 2u);
  EXPECT_NE(client->session().id, session.id);
  EXPECT_EQ(Await(client->Exists("/e")).error(), Code::kNoNode);
  EXPECT_EQ(Await(client->Get("/p"))->stat.version, 0);
  Await(client->Set("/p", "y", -1));
  ASSERT_FALSE(lasting.events().empty());
  EXPECT_EQ(lasting.events().back(), "changed /p") << "armed again in the new session";
  EXPECT_THAT(once.events(), ElementsAre("none"));
}

TEST_F(WireFailureTest, StoppedProcessDoesNotBlameAServerThatAnswered) {
  ZooKeeperServer server;
  server.Start();
  TestClient client(*this, OptionsFor({server.address()}, seconds(3)));
  ASSERT_TRUE(client.WaitFor(SessionState::kConnected));
  auto answered = client->Exists("/");
  server.Pause();  // lest the answer is there before the client stops
  testing::RunReady(loop);
  server.Resume();
  SteadyTime until = loop.SteadyNow() + milliseconds(2200);
  ASSERT_TRUE(WhileStopped([&] { return loop.SteadyNow() > until; }));
  EXPECT_TRUE(Await(std::move(answered)));
  EXPECT_THAT(client.states, ElementsAre(SessionState::kConnected));
}

class WireEnsembleTest : public WireFailureTest {
 protected:
  static void SetUpTestSuite() { ensemble = new ZooKeeperEnsemble; }
  static void TearDownTestSuite() {
    delete ensemble;
    ensemble = nullptr;
  }

  static ZooKeeperEnsemble* ensemble;
};

ZooKeeperEnsemble* WireEnsembleTest::ensemble = nullptr;

TEST_F(WireEnsembleTest, HangingServerIsLeftInTimeToKeepTheSession) {
  std::size_t follower = (ensemble->Leader() + 1) % ensemble->size();
  ZooKeeperServer& hanging = ensemble->server(follower);
  TestClient client(*this, OptionsFor({hanging.address()}, seconds(6)));
  ASSERT_TRUE(client.WaitFor(SessionState::kConnected));
  Session session = client->session();
  client->SetServers(ensemble->addresses());
  hanging.Pause();
  Error error = ErrorOf(client->Get("/zookeeper"));
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_THAT(error.message(), HasSubstr("silent for"));
  ASSERT_TRUE(client.WaitFor(SessionState::kConnected));
  hanging.Resume();
  EXPECT_EQ(client->session(), session);
}

Task<> WriteUntilStopped(Loop& loop, WireClient& client, std::set<std::string>& acknowledged,
                         const bool& is_stopped) {
  for (int i = 0;; ++i) {
    if (is_stopped) co_return;
    Error error(Verdict::kRetry, "");
    std::string path = fmt::format("/writes/{}", i);
    while (error.verdict() == Verdict::kRetry) {
      try {
        auto created = co_await client.Create(path, "", CreateMode::kPersistent);
        if (created || created.error() == Code::kNodeExists) acknowledged.insert(path);
        error = Error(Verdict::kFail, "");
      } catch (const Error& e) {
        error = e;
      }
    }
    co_await loop.SleepFor(milliseconds(1));
  }
}

TEST_F(WireEnsembleTest, NoAcknowledgedWriteIsLostWhenTheLeaderDies) {
  TestClient client(*this, OptionsFor(ensemble->addresses(), seconds(30)));
  Await(client->Create("/writes", "", CreateMode::kPersistent));
  std::set<std::string> acknowledged;
  bool is_stopped = false;
  TaskGroup group(loop, log::Logger("test"));
  group.Spawn("writer", WriteUntilStopped(loop, *client, acknowledged, is_stopped));
  ASSERT_TRUE(Until([&] { return acknowledged.size() > 100; }));
  std::size_t leader = ensemble->Leader();
  ensemble->server(leader).Kill();
  std::size_t before = acknowledged.size();
  ASSERT_TRUE(Until([&] { return acknowledged.size() > before + 300; }));
  is_stopped = true;
  Await(group.Join());
  Await(client->Sync("/writes"));
  auto children = Await(client->GetChildren("/writes"));
  std::set<std::string> present(children->names.begin(), children->names.end());
  for (const std::string& path : acknowledged) EXPECT_EQ(present.count(path.substr(8)), 1u) << path;
  EXPECT_EQ(client->session().generation, 1u) << "the session moved to the new leader";
  ensemble->server(leader).Restart();
}

// TLS against a real Apache ZooKeeper (coordination.md 2.3).

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
