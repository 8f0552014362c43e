#include "zk/wire/wire_tls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/ssl/error.hpp>

#include "base/tls_files.h"

namespace nodepool::zk {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

namespace {

constexpr const char* kSetting = "zookeeper-tls";

std::unique_ptr<ssl::context> Load(const TlsFiles& files, ssl::context::method method) {
  auto context = std::make_unique<ssl::context>(method);
  UseCertificate(*context, {files.cert, files.key}, kSetting);
  UseAuthorities(*context, files.ca, kSetting);
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
  context->set_default_verify_paths();
  context->set_verify_mode(ssl::verify_peer);
  return context;
}

std::unique_ptr<ssl::context> MakeServerTlsContext(const TlsFiles& files) {
  auto context = Load(files, ssl::context::tls_server);
  context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  return context;
}

}  // namespace nodepool::zk
