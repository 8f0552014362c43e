#include "base/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "base/encoding.h"

namespace nodepool {
namespace {

using Sha256 = std::array<unsigned char, 32>;

std::string TextOf(const Sha256& digest) {
  return std::string(reinterpret_cast<const char*>(digest.data()), digest.size());
}

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  Sha256 digest{};
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return Hex(TextOf(digest));
}

std::string KeyedDigest(std::string_view key, std::string_view bytes) {
  Sha256 digest{};
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data(), nullptr);
  return TextOf(digest);
}

}  // namespace nodepool
