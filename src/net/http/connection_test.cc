#include "net/http/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>

#include "async/task_group.h"
#include "async/testing/run_ready.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/testing/manual_clock.h"
#include "net/servers_for_test.h"

namespace nodepool::net {

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

class SeatsTest : public ::testing::Test {
 protected:
  // A seat that notes its name when it is sent away.
  Seat& Enter(Seats& seats, std::string name, std::string network, std::string proven_as = "") {
    now_ += milliseconds(1);
    Seats::Ptr seat = seats.Enter(std::move(network), std::move(proven_as), now_);
    if (seat) seat->leave = [this, name] { gone_.push_back(name); };
    is_refused_ = seat == nullptr;
    static Seat none;
    return seat ? *taken_.emplace_back(std::move(seat)) : none;
  }
  void Advance(Duration time) { now_ += time; }

  SteadyTime now_{seconds(1)};
  bool is_refused_ = false;
  std::vector<std::string> gone_;
  Seats seats_{{.strangers = 3, .proven = 2, .held_bytes = 100}};
  std::deque<Seats::Ptr> taken_;
};

// HTTP-1
TEST_F(SeatsTest, WhoDoesNothingForLongestGivesWay) {
  Enter(seats_, "a", "a");
  Seat& b = Enter(seats_, "b", "b");
  Enter(seats_, "c", "c");
  Seat& d = Enter(seats_, "d", "d");
  EXPECT_THAT(gone_, ElementsAre("a"));
  b.since = now_ + milliseconds(1);
  Enter(seats_, "e", "e");
  EXPECT_THAT(gone_, ElementsAre("a", "c")) << "b has taken bytes since";
  b.awaits_peer = d.awaits_peer = false;
  Enter(seats_, "f", "f");
  EXPECT_THAT(gone_, ElementsAre("a", "c", "e")) << "the others are being answered";
  EXPECT_EQ(seats_.strangers(), 3u);
}

// HTTP-1
TEST_F(SeatsTest, ANetworkWithManySeatsGivesWay) {
  Seat& old = Enter(seats_, "old", "other");
  Enter(seats_, "one", "flood").awaits_peer = false;
  Enter(seats_, "two", "flood").awaits_peer = false;
  Enter(seats_, "three", "flood");
  EXPECT_THAT(gone_, ElementsAre("one")) << "a network cannot have all";
  EXPECT_EQ(old.network, "other");
  EXPECT_NE(old.party, nullptr);
}

// HTTP-1
TEST_F(SeatsTest, AFairShareIsNoReasonToGiveWay) {
  Seats seats({.strangers = 4, .proven = 1, .fair_share = 2});
  for (const char* name : {"a", "b"}) Enter(seats, name, name);
  for (const char* name : {"client 1", "client 2"}) Enter(seats, name, "client");
  for (const char* name : {"c", "d"}) Enter(seats, name, name);
  EXPECT_THAT(gone_, ElementsAre("a", "b")) << "a network for each, and nothing done for longer";
  taken_.clear();
}

// HTTP-2
TEST_F(SeatsTest, WhoHasProvedWhoHeIsKeepsHisSeatBesideStrangers) {
  Seat& client = Enter(seats_, "client", "flood");
  seats_.Prove(client, "ci");
  for (int i = 0; i < 100; ++i) Enter(seats_, "stranger", "flood");
  EXPECT_NE(client.party, nullptr);
  EXPECT_EQ(seats_.strangers(), 3u);
  EXPECT_EQ(seats_.proven(), 1u);
  seats_.Prove(client, "");
  EXPECT_EQ(seats_.proven(), 0u);
  Enter(seats_, "one more", "flood");
  EXPECT_EQ(client.party, nullptr) << "its token was withdrawn";
}

// HTTP-2
TEST_F(SeatsTest, ATokenCannotHaveAllSeats) {
  Seat& first = Enter(seats_, "first", "a");
  Seat& second = Enter(seats_, "second", "a");
  for (Seat* seat : {&first, &second}) seats_.Prove(*seat, "greedy");
  Seat& other = Enter(seats_, "other", "a");
  seats_.Prove(other, "other");
  EXPECT_EQ(first.proven_as, "") << "a stranger again, and not sent away";
  EXPECT_THAT(gone_, IsEmpty());
  EXPECT_EQ(second.proven_as, "greedy");
  EXPECT_EQ(other.proven_as, "other");
}

TEST_F(SeatsTest, ASeatIsFreeAgainWhenItIsLeft) {
  for (const char* name : {"a", "b", "c"}) Enter(seats_, name, name);
  taken_.pop_front();
  Enter(seats_, "d", "d");
  EXPECT_THAT(gone_, IsEmpty());
}

// HTTP-1: of those that hold memory for answers that they do not take
TEST_F(SeatsTest, AnAnswerThatNobodyTakesGivesWay) {
  Seat& deaf = Enter(seats_, "deaf", "a");
  Seat& stranger = Enter(seats_, "stranger", "b");
  Seat& client = Enter(seats_, "client", "c", "ci");
  EXPECT_TRUE(seats_.Hold(deaf, 60, now_));
  EXPECT_FALSE(seats_.Hold(stranger, 60, now_)) << "it may be only slow";
  EXPECT_FALSE(seats_.Hold(stranger, 101, now_ + seconds(9)));
  EXPECT_THAT(gone_, IsEmpty());
  EXPECT_TRUE(seats_.Hold(stranger, 60, now_ + seconds(1)));
  EXPECT_THAT(gone_, ElementsAre("deaf"));
  stranger.since = now_;
  EXPECT_TRUE(seats_.Hold(client, 60, now_));
  EXPECT_THAT(gone_, ElementsAre("deaf", "stranger")) << "no stranger has what is for others";
  seats_.Release(client);
  EXPECT_TRUE(seats_.Hold(client, 100, now_));
}

// HTTP-3
TEST_F(SeatsTest, WhereDoingNothingIsOrdinaryOnlyTheLargestGivesWay) {
  Seats streams({.strangers = 3, .proven = 1, .replaces_own = false});
  for (const char* name : {"a1", "a2", "a3"}) Enter(streams, name, "a");
  Enter(streams, "a4", "a");
  EXPECT_TRUE(is_refused_);
  Enter(streams, "b1", "b");
  EXPECT_THAT(gone_, ElementsAre("a1"));
  Enter(streams, "b2", "b");
  EXPECT_TRUE(is_refused_) << "the other would have less then";
  Enter(streams, "c", "b", "ci");
  EXPECT_FALSE(is_refused_);
  taken_.clear();
}

// ACT-15
TEST(PeerNetworkTest, OfIpv6TheFirstHalfCounts) {
  EXPECT_EQ(NetworkOf("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(NetworkOf("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(NetworkOf("2001:db8:1:2::9"), NetworkOf("2001:db8:1:2:ffff::"));
  EXPECT_NE(NetworkOf("2001:db8:1:3::9"), NetworkOf("2001:db8:1:2::9"));
  EXPECT_EQ(NetworkOf("what"), "what");
}

constexpr const char* kRefused = "The web server's changed certificate cannot be used";
constexpr const char* kTaken = "The web server's certificate was read again";

std::string Text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string CommonName(ServerCertificate& certificate) {
  char name[100] = "";
  const X509* shown = SSL_CTX_get0_certificate(certificate.context().native_handle());
  X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, name, sizeof name);
  return name;
}

class ServerCertificateTest : public ::testing::Test {
 protected:
  ServerCertificateTest() {
    Replace("server.pem", files_.cert);
    Replace("server.key", files_.key);
  }
  void TearDown() override {
    if (!certificate_) return;
    tasks_.CancelAll();
    testing::RunReady(loop_);
  }

  static const CertificatesForTest& Made() {
    static const CertificatesForTest made;
    return made;
  }
  // As programs that renew certificates do it.
  void Replace(const std::string& source, const std::string& path) {
    fs::copy_file(Made().Path(source), path + ".new", fs::copy_options::overwrite_existing);
    fs::rename(path + ".new", path);
  }
  void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

  void Follow() {
    certificate_.emplace(loop_, files_, "webapp.tls", log::Logger("test"));
    tasks_.Spawn("follow", certificate_->Follow());
    testing::RunReady(loop_);
  }
  void Advance(Duration time) {
    testing::RunReady(loop_);
    clock_.AdvanceTo(clock_.SteadyNow() + time);
    testing::RunReady(loop_);
  }
  std::string Fault() {
    try {
      ServerCertificate certificate(loop_, files_, "webapp.tls", log::Logger("test"));
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kInvalid);
      return error.message();
    }
    return "";
  }

  testing::ManualClock clock_{Loop().Now()};
  Loop loop_{clock_};
  CertificatesForTest own_;  // its folder is this test's own
  CertificateFiles files_{own_.Path("web.pem"), own_.Path("web.key")};
  TaskGroup tasks_{loop_, log::Logger("test")};
  std::optional<ServerCertificate> certificate_;
};

TEST_F(ServerCertificateTest, FilesThatCannotBeUsedAreNamedWithTheReason) {  // TLS-2
  EXPECT_EQ(Fault(), "");
  const std::string secret = Text(files_.key);
  Write(files_.key, "");
  EXPECT_EQ(Fault(), "webapp.tls: cannot read the key file \"" + files_.key + "\": it is empty");
  Replace("client.key", files_.key);
  EXPECT_EQ(Fault(), "webapp.tls: the key file \"" + files_.key +
                         "\" cannot be used: it is not the key of the certificate in \"" + files_.cert +
                         "\"");
  Write(files_.key, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
  EXPECT_THAT(Fault(), HasSubstr("it has a pass phrase"));
  Write(files_.key, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
  EXPECT_THAT(Fault(), AllOf(HasSubstr("the key file"), Not(HasSubstr("AAAA"))));
  Write(files_.key, "secret");
  EXPECT_THAT(Fault(), AllOf(HasSubstr("it is not PEM"), Not(HasSubstr("secret"))));
  Write(files_.key, secret);
  fs::remove(files_.cert);
  EXPECT_EQ(Fault(),
            "webapp.tls: cannot read the cert file \"" + files_.cert + "\": No such file or directory");
  fs::create_directory(files_.cert);
  EXPECT_THAT(Fault(), HasSubstr("it is not a regular file"));
  fs::remove(files_.cert);
  Write(files_.cert, std::string(2 << 20, 'x'));
  EXPECT_THAT(Fault(), HasSubstr("it has more than 1 MiB"));
}

TEST_F(ServerCertificateTest, AKeyOfAnotherKindIsNotThatOfTheCertificate) {  // TLS-2
  ASSERT_EQ(std::system(("openssl genrsa -out " + files_.key + " 2048 2>/dev/null").c_str()), 0);
  EXPECT_THAT(Fault(), HasSubstr("it is not the key of the certificate in"));
}

TEST_F(ServerCertificateTest, AChangedPairIsTaken) {  // TLS-3
  Follow();
  log::Capture log;
  EXPECT_EQ(CommonName(*certificate_), "the server");
  Replace("client.pem", files_.cert);
  Advance(1s);
  EXPECT_EQ(CommonName(*certificate_), "the server") << "the key is yet to come";
  Replace("client.key", files_.key);
  testing::RunReady(loop_);
  EXPECT_EQ(CommonName(*certificate_), "the client");
  EXPECT_EQ(log.Count(kTaken), 1);
  EXPECT_EQ(log.Count(kRefused), 0);
  Advance(1h);
  EXPECT_EQ(log.Count(kTaken), 1);
}

TEST_F(ServerCertificateTest, ABadPairIsReportedOnceAndThePreviousOneStays) {  // TLS-4
  Follow();
  log::Capture log;
  Replace("client.pem", files_.cert);
  for (int i = 0; i < 10; ++i) Advance(1min);
  EXPECT_EQ(log.Count(kRefused), 1);
  EXPECT_EQ(log.Count("it is not the key of the certificate"), 1);
  EXPECT_EQ(CommonName(*certificate_), "the server");
  fs::remove(files_.cert);
  Advance(1min);
  EXPECT_EQ(log.Count(kRefused), 2) << "another fault";
  Replace("server.pem", files_.cert);
  Advance(1s);
  EXPECT_EQ(log.Count(kTaken), 1);
  EXPECT_EQ(log.Count("PRIVATE KEY"), 0);
}

TEST_F(ServerCertificateTest, ItsEndIsWarnedOfEachDay) {  // TLS-5
  Follow();                                               // ends in 30 days
  log::Capture log;
  Advance(15 * 24h);
  EXPECT_EQ(log.Count("ends soon"), 0);
  Advance(24h + 2min);
  EXPECT_EQ(log.Count("ends soon"), 1);
  for (int i = 0; i < 10; ++i) Advance(1h);
  EXPECT_EQ(log.Count("ends soon"), 1);
  Advance(24h);
  EXPECT_EQ(log.Count("ends soon"), 2);
  for (int i = 0; i < 14; ++i) Advance(24h);
  EXPECT_GE(log.Count("has ended at"), 1);
}

TEST_F(ServerCertificateTest, OneThatIsNotYetValidIsWarnedOf) {  // TLS-5
  clock_.ShiftWallClock(-48h);
  log::Capture log;
  Follow();
  EXPECT_EQ(log.Count("is not valid before"), 1);
}

}  // namespace

}  // namespace nodepool::net
