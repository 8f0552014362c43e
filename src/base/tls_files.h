#pragma once

#include <boost/asio/ssl/context.hpp>
#include <string>

namespace nodepool {

// A certificate with those of its chain, and its private key: paths of PEM files.
struct CertificateFiles {
  std::string cert;
  std::string key;
};

// Makes `context` show the certificate to its peers. Error(kInvalid) names `setting`, the one that has the
// files, the file that cannot be used, and why; it never quotes a file. Reads at most 1 MiB of each.
void UseCertificate(boost::asio::ssl::context& context, const CertificateFiles& files,
                    const std::string& setting);

// Makes `context` trust the authorities in the PEM file. Errors as above.
void UseAuthorities(boost::asio::ssl::context& context, const std::string& ca, const std::string& setting);

}  // namespace nodepool
