#include "zk/wire/wire_tls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/ssl/error.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace nodepool::zk {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

namespace {

// OpenSSL's message for a missing file does not help an operator.
void CheckReadable(const char* what, const std::string& file) {
  std::ifstream in(file);
  char first;
  if (in.get(first)) return;
  throw Error(Verdict::kInvalid, fmt::format("zookeeper-tls: cannot read the {} file \"{}\": {}", what, file,
                                             in.eof() ? "it is empty" : std::strerror(errno)));
}

void Check(const error_code& error, const char* what, const std::string& file) {
  if (!error) return;
  throw Error(Verdict::kInvalid, fmt::format("zookeeper-tls: the {} file \"{}\" cannot be used: {}", what,
                                             file, error.message()));
}

std::unique_ptr<ssl::context> Load(const TlsFiles& files, ssl::context::method method) {
  CheckReadable("cert", files.cert);
  CheckReadable("key", files.key);
  CheckReadable("ca", files.ca);
  auto context = std::make_unique<ssl::context>(method);
  error_code error;
  // Without this a key with a pass phrase would ask for it on the terminal.
  context->set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string(); },
                                 error);
  Check(error, "key", files.key);
  context->use_certificate_chain_file(files.cert, error);
  Check(error, "cert", files.cert);
  context->use_private_key_file(files.key, ssl::context::pem, error);
  Check(error, "key", files.key);
  context->load_verify_file(files.ca, error);
  Check(error, "ca", files.ca);
  return context;
}

// Alerts by which a server says that it does not take our certificate.
constexpr std::array kCertificateAlerts = {
    SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,      SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
    SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED,  SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,
    SSL_R_TLSV1_ALERT_ACCESS_DENIED,        SSL_R_TLSV1_ALERT_UNKNOWN_CA,
    SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED};

bool IsOutOfDate(long certificate_fault) {
  return certificate_fault == X509_V_ERR_CERT_HAS_EXPIRED ||
         certificate_fault == X509_V_ERR_CERT_NOT_YET_VALID;
}

}  // namespace

std::optional<std::string> ExplainTlsFault(const error_code& fault, long certificate_fault,
                                           const TlsFiles& files) {
  if (fault.category() != boost::asio::error::get_ssl_category()) return std::nullopt;
  int reason = ERR_GET_REASON(static_cast<unsigned long>(fault.value()));
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    const char* words = X509_verify_cert_error_string(certificate_fault);
    if (IsOutOfDate(certificate_fault))
      return fmt::format("the server's certificate is of no use: {}", words);
    return fmt::format("the server's certificate is not signed by zookeeper-tls.ca ({}): {}", files.ca,
                       words);
  }
  if (std::ranges::find(kCertificateAlerts, reason) == kCertificateAlerts.end()) return std::nullopt;
  return fmt::format("the server does not trust zookeeper-tls.cert ({}): {}", files.cert, fault.message());
}

std::unique_ptr<ssl::context> MakeTlsContext(const TlsFiles& files) {
  auto context = Load(files, ssl::context::tls_client);
  error_code error;
  context->set_default_verify_paths(error);
  Check(error, "ca", files.ca);
  context->set_verify_mode(ssl::verify_peer, error);
  Check(error, "ca", files.ca);
  return context;
}

std::unique_ptr<ssl::context> MakeServerTlsContext(const TlsFiles& files) {
  auto context = Load(files, ssl::context::tls_server);
  error_code error;
  context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
  Check(error, "ca", files.ca);
  return context;
}

}  // namespace nodepool::zk
