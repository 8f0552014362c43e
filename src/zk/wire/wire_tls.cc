#include "zk/wire/wire_tls.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace nodepool::zk {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

namespace {

// OpenSSL's own words for a missing file are no help to a person.
void CheckReadable(const char* what, const std::string& file) {
  std::ifstream in(file);
  char first;
  if (in.get(first)) return;
  throw Error(Verdict::kInvalid, fmt::format("zookeeper-tls: cannot read the {} file \"{}\": {}", what, file,
                                             in.eof() ? "it is empty" : std::strerror(errno)));
}

void Check(const error_code& error, const char* what, const std::string& file) {
  if (!error) return;
  throw Error(Verdict::kInvalid,
              fmt::format("zookeeper-tls: the {} file \"{}\" is of no use: {}", what, file, error.message()));
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

}  // namespace

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
