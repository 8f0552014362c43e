#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

namespace nodepool::drivers::libvirt {

// A checksum of bytes that come in pieces.
class Digest {
 public:
  // `algorithm` as OpenSSL calls it: "sha256", "sha512". Error(kInvalid): it is not known.
  explicit Digest(const std::string& algorithm);

  void Add(std::string_view bytes);
  // In hex, lower case. To be called once.
  std::string Hex();

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

}  // namespace nodepool::drivers::libvirt
