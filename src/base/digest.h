#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

namespace nodepool {

// A checksum of bytes that come in pieces.
class Digest {
 public:
  // `algorithm` as OpenSSL calls it: "md5", "sha256". Error(kInvalid): it is not known.
  explicit Digest(const std::string& algorithm);

  void Add(std::string_view bytes);
  // One of these is to be called, once. In hex, lower case:
  std::string Hex();
  std::string Bytes();

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

// SHA-256 in lower-case hex, 64 digits.
std::string Sha256Hex(std::string_view bytes);

// HMAC-SHA-256, 32 bytes: identifies a secret in memory without keeping it.
std::string KeyedDigest(std::string_view key, std::string_view bytes);

}  // namespace nodepool
