#include "base/tls_files.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/error.h"

namespace nodepool {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr std::size_t kMaxFile = 1 << 20;

// A setting's file; `key` is its key there.
struct TlsFile {
  const std::string& setting;
  const char* key;
  const std::string& path;

  Error Unreadable(std::string_view why) const {
    return Error(Verdict::kInvalid,
                 fmt::format("{}: cannot read the {} file \"{}\": {}", setting, key, path, why));
  }
  Error Unusable(std::string_view why) const {
    return Error(Verdict::kInvalid,
                 fmt::format("{}: the {} file \"{}\" cannot be used: {}", setting, key, path, why));
  }

  // `mark` is a part of every PEM file of its kind.
  std::string Read(std::string_view mark) const {
    struct stat about = {};
    if (::stat(path.c_str(), &about) != 0) throw Unreadable(std::strerror(errno));
    if (!S_ISREG(about.st_mode)) throw Unreadable("it is not a regular file");
    if (about.st_size == 0) throw Unreadable("it is empty");
    if (static_cast<std::size_t>(about.st_size) > kMaxFile) throw Unreadable("it has more than 1 MiB");
    errno = 0;
    std::string text(static_cast<std::size_t>(about.st_size), '\0');
    std::ifstream in(path, std::ios::binary);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (!in) throw Unreadable(errno != 0 ? std::strerror(errno) : "it is being written");
    if (text.find(mark) == text.npos)
      throw Unusable(fmt::format("it is not PEM: no line of it has \"{}\"", mark));
    return text;
  }
  void Check(const error_code& error) const {
    if (error) throw Unusable(error.message());
  }
};

bool IsOfAnotherKey(const error_code& error) {
  auto code = static_cast<unsigned long>(error.value());
  return error && ERR_GET_LIB(code) == ERR_LIB_X509 &&
         (ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH ||
          ERR_GET_REASON(code) == X509_R_KEY_TYPE_MISMATCH);
}

}  // namespace

void UseCertificate(ssl::context& context, const CertificateFiles& files, const std::string& setting) {
  TlsFile cert{setting, "cert", files.cert};
  TlsFile key{setting, "key", files.key};
  std::string chain = cert.Read("CERTIFICATE-----");
  std::string secret = key.Read("PRIVATE KEY-----");
  if (secret.find("ENCRYPTED") != secret.npos)
    throw key.Unusable("it has a pass phrase; write it without one, readable by Nodepool's user alone");
  error_code error;
  context.use_certificate_chain(boost::asio::buffer(chain), error);
  cert.Check(error);
  context.use_private_key(boost::asio::buffer(secret), ssl::context::pem, error);
  bool is_of_another = IsOfAnotherKey(error);
  if (!is_of_another) key.Check(error);
  if (is_of_another || ::SSL_CTX_check_private_key(context.native_handle()) != 1) {
    ::ERR_clear_error();
    throw key.Unusable(fmt::format("it is not the key of the certificate in \"{}\"", files.cert));
  }
}

void UseAuthorities(ssl::context& context, const std::string& ca, const std::string& setting) {
  TlsFile file{setting, "ca", ca};
  file.Read("-----BEGIN ");
  error_code error;
  context.load_verify_file(ca, error);
  file.Check(error);
}

}  // namespace nodepool
