#include "net/http/server_certificate.h"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/time_text.h"

namespace nodepool::net {
namespace {

namespace ssl = boost::asio::ssl;
using std::chrono::hours;

constexpr Duration kCheckInterval =
    std::chrono::minutes(1);                            // beside FileWatch, which does not see everything
constexpr Duration kWriting = std::chrono::seconds(2);  // max. time between writing the two files
constexpr Duration kRenewalTime = hours(14 * 24);
constexpr Duration kWarningInterval = hours(24);

// RFC 7301; a client that offers none of it is sent away by the alert that it names.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* found = nullptr;
  int result =
      ::SSL_select_next_proto(&found, chosen_size, kHttp11, sizeof(kHttp11) - 1, offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::unique_ptr<ssl::context> MakeContext() {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  ::SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);  // tickets resume sessions, and cost no memory
  ::SSL_CTX_set_alpn_select_cb(native, &ChooseProtocol, nullptr);
  return context;
}

WallTime TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  ::ASN1_TIME_to_tm(time, &parts);
  return FromSeconds(static_cast<double>(::timegm(&parts)));
}

void Sign(EVP_PKEY* key) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  std::array<unsigned char, 64> text = {};
  std::string signature(static_cast<std::size_t>(EVP_PKEY_get_size(key)), '\0');
  std::size_t size = signature.size();
  if (::EVP_DigestSignInit_ex(digest.get(), nullptr, nullptr, nullptr, nullptr, key, nullptr) != 1) return;
  ::EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, text.data(),
                   text.size());
}

// The shortest of some, since other programs may take the processor meanwhile.
Duration SigningTime(Loop& loop, EVP_PKEY* key) {
  Duration shortest = Duration::max();
  for (int i = 0; i < 3; ++i) {
    SteadyTime start = loop.SteadyNow();
    Sign(key);
    shortest = std::min(shortest, loop.SteadyNow() - start);
  }
  return shortest;
}

}  // namespace

ServerCertificate::ServerCertificate(Loop& loop, CertificateFiles files, std::string setting,
                                     log::Logger logger)
    : loop_(loop),
      files_(std::move(files)),
      setting_(std::move(setting)),
      logger_(std::move(logger)),
      loaded_(Load()),
      checks_(
          loop, "the web server's certificate", {}, [this] { return Check(); }, logger_),
      watch_(loop, {std::filesystem::absolute(files_.cert), std::filesystem::absolute(files_.key)},
             [this] { checks_.Wake(); }) {}

std::string ServerCertificate::Identity() const {
  return FileIdentity(files_.cert) + " " + FileIdentity(files_.key);
}

ServerCertificate::Loaded ServerCertificate::Load() const {
  Loaded loaded;
  loaded.identity = Identity();  // first: the next check sees a change meanwhile
  loaded.context = MakeContext();
  UseCertificate(*loaded.context, files_, setting_);
  SSL_CTX* native = loaded.context->native_handle();
  const X509* certificate = ::SSL_CTX_get0_certificate(native);
  loaded.begins = TimeOf(::X509_get0_notBefore(certificate));
  loaded.ends = TimeOf(::X509_get0_notAfter(certificate));
  loaded.signing_time = SigningTime(loop_, ::SSL_CTX_get0_privatekey(native));
  return loaded;
}

// Returns when the next check is due.
SteadyTime ServerCertificate::Check() {
  SteadyTime now = loop_.SteadyNow();
  bool is_changed = Identity() != loaded_.identity;
  try {
    if (is_changed) {
      loaded_ = Load();
      warned_at_.reset();
      logger_.Info("The web server's certificate was read again from {}; it ends at {}", files_.cert,
                   Iso8601(loaded_.ends));
    }
    faulty_since_.reset();
    reported_.clear();
  } catch (const Error& fault) {
    if (!faulty_since_) faulty_since_ = now;
    if (now < *faulty_since_ + kWriting) return *faulty_since_ + kWriting;
    Report(fault.message());
  }
  WarnOfDates();
  return now + kCheckInterval;
}

void ServerCertificate::Report(const std::string& fault) {
  if (fault == reported_) return;
  reported_ = fault;
  logger_.Error("The web server's changed certificate cannot be used, the previous one stays in use: {}",
                fault);
}

void ServerCertificate::WarnOfDates() {
  WallTime now = loop_.Now();
  bool is_good = loaded_.begins <= now && now < loaded_.ends - kRenewalTime;
  bool is_warned = warned_at_ && loop_.SteadyNow() < *warned_at_ + kWarningInterval;
  if (is_good || is_warned) return;
  warned_at_ = loop_.SteadyNow();
  if (now < loaded_.begins) {
    logger_.Warning("The web server's certificate {} is not valid before {}: clients refuse it until then",
                    files_.cert, Iso8601(loaded_.begins));
  } else if (now >= loaded_.ends) {
    logger_.Warning(
        "The web server's certificate {} has ended at {}: clients refuse it; replace it and its key",
        files_.cert, Iso8601(loaded_.ends));
  } else {
    logger_.Warning("The web server's certificate {} ends soon, at {}: replace it and its key", files_.cert,
                    Iso8601(loaded_.ends));
  }
}

}  // namespace nodepool::net
