#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace nodepool {

// A private RSA key for signatures. Copies share the key, which is never written anywhere.
class RsaKey {
 public:
  // Reads PEM text, PKCS#1 or PKCS#8, without a pass phrase. The error says what is wrong, and quotes nothing
  // of the text.
  static Expected<RsaKey> Parse(std::string_view pem);

  // The bytes of the signature by RSASSA-PKCS1-v1_5 with SHA-256 ("RS256"). Error(kFail): OpenSSL refuses.
  std::string Sign(std::string_view text) const;

 private:
  explicit RsaKey(std::shared_ptr<EVP_PKEY> key) : key_(std::move(key)) {}

  std::shared_ptr<EVP_PKEY> key_;
};

// A JSON web token of the claims, which are a JSON text, signed with RS256 (RFC 7515). `key_id`: by which who
// checks it knows the key; empty: it is not said.
std::string SignedToken(const RsaKey& key, std::string_view claims, std::string_view key_id = "");

// As in tokens (RFC 4648, 5): "-" and "_", without padding.
std::string Base64Url(std::string_view bytes);
// The bytes; the error quotes nothing.
Expected<std::string> FromBase64Url(std::string_view text);

}  // namespace nodepool
