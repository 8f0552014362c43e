#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

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

// Hashes of secrets for files. Of a secret with 256 random bits, 64 digits of hex in lower case, SHA-256 is
// enough: "$sha256$<hash in hex>". Of others argon2id in its usual text form,
// "$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>".

// Random bytes that nobody can guess, from the operating system. Throws Error(kFail) when there are none.
std::string SecretBytes(std::size_t count);

// A secret for which SHA-256 is enough.
std::string RandomSecret();

// The hash of a random secret.
std::string HashRandomSecret(std::string_view secret);

// Whether the text is such a hash of either kind; argon2id of at most 64 MiB, 10 passes and 4 lanes, so that
// its verification is bounded.
bool IsSecretHash(std::string_view hash);

// Whether its verification takes no time that matters.
bool IsQuickHash(std::string_view hash);

// Takes as long as the hash says. False as well for a text that is no hash.
bool MatchesHash(std::string_view secret, const std::string& hash);

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
