#include "base/digest.h"

#include <openssl/hmac.h>

#include <array>

#include "base/encoding.h"
#include "base/error.h"

namespace nodepool {
namespace {

using Buffer = std::array<unsigned char, EVP_MAX_MD_SIZE>;

std::string_view TextOf(const Buffer& digest, unsigned length) {
  return {reinterpret_cast<const char*>(digest.data()), length};
}

}  // namespace

Digest::Digest(const std::string& algorithm) {
  const EVP_MD* method = EVP_get_digestbyname(algorithm.c_str());
  if (method == nullptr) throw Error(Verdict::kInvalid, "there is no checksum " + algorithm);
  EVP_DigestInit_ex(context_.get(), method, nullptr);
}

void Digest::Add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }

std::string Digest::Hex() { return nodepool::Hex(Bytes()); }

std::string Digest::Bytes() {
  Buffer digest{};
  unsigned length = 0;
  EVP_DigestFinal_ex(context_.get(), digest.data(), &length);
  return std::string(TextOf(digest, length));
}

std::string Sha256Hex(std::string_view bytes) {
  Digest digest("sha256");
  digest.Add(bytes);
  return digest.Hex();
}

std::string KeyedDigest(std::string_view key, std::string_view bytes) {
  Buffer digest{};
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data(), &length);
  return std::string(TextOf(digest, length));
}

}  // namespace nodepool
