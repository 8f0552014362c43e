#include "net/http/server_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "async/task_group.h"
#include "base/error.h"
#include "base/time_text.h"
#include "net/tls_for_test.h"

namespace nodepool::net {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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
    loop_.RunReady();
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
    loop_.RunReady();
  }
  void Advance(Duration time) {
    loop_.RunReady();
    clock_.AdvanceTo(clock_.SteadyNow() + time);
    loop_.RunReady();
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

  ManualClock clock_{Loop().Now()};
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
  loop_.RunReady();
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
