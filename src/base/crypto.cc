#include "base/crypto.h"

#include <argon2.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/text.h"

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

namespace {

constexpr std::uint32_t kMaxPasses = 10;
constexpr std::uint32_t kMaxMemory = 64 * 1024;  // KiB
constexpr std::uint32_t kMaxLanes = 4;
constexpr std::size_t kMaxText = 256;

constexpr std::string_view kQuick = "$sha256$";
constexpr std::size_t kRandomBytes = 32;

bool Is256BitsInHex(std::string_view text) {
  return text.size() == 2 * kRandomBytes && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Whoever has chosen another secret must not get away with a hash that can be computed so fast.
bool MatchesQuickHash(std::string_view secret, std::string_view hash) {
  if (!Is256BitsInHex(secret)) return false;
  std::string own = HashRandomSecret(secret);
  return own.size() == hash.size() && CRYPTO_memcmp(own.data(), hash.data(), own.size()) == 0;
}

// The number in "m=19456" for "m=".
std::optional<std::uint32_t> Cost(std::string_view text, std::string_view name) {
  if (!text.starts_with(name)) return std::nullopt;
  text.remove_prefix(name.size());
  std::uint32_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string SecretBytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1)
    throw Error(Verdict::kFail, "the operating system has no random numbers");
  return bytes;
}

std::string RandomSecret() { return Hex(SecretBytes(kRandomBytes)); }

std::string HashRandomSecret(std::string_view secret) { return std::string(kQuick) + Sha256Hex(secret); }

bool IsQuickHash(std::string_view hash) {
  return hash.starts_with(kQuick) && Is256BitsInHex(hash.substr(kQuick.size()));
}

bool IsSecretHash(std::string_view hash) {
  if (IsQuickHash(hash)) return true;
  std::vector<std::string> parts = Split(hash, '$');
  if (hash.size() >= kMaxText || parts.size() != 6 || !parts[0].empty()) return false;
  if (parts[1] != "argon2id" || parts[2] != "v=19" || parts[4].empty() || parts[5].empty()) return false;
  std::vector<std::string> costs = Split(parts[3], ',');
  if (costs.size() != 3) return false;
  std::optional<std::uint32_t> memory = Cost(costs[0], "m=");
  std::optional<std::uint32_t> passes = Cost(costs[1], "t=");
  std::optional<std::uint32_t> lanes = Cost(costs[2], "p=");
  return memory && passes && lanes && *memory <= kMaxMemory && *passes <= kMaxPasses && *lanes <= kMaxLanes;
}

bool MatchesHash(std::string_view secret, const std::string& hash) {
  if (IsQuickHash(hash)) return MatchesQuickHash(secret, hash);
  return IsSecretHash(hash) && argon2id_verify(hash.c_str(), secret.data(), secret.size()) == ARGON2_OK;
}

namespace {

// In place of a question on the terminal.
int NoPassPhrase(char*, int, int, void*) { return 0; }

std::unexpected<Error> NoKey(const char* why) {
  ERR_clear_error();
  return Unexpected(Verdict::kInvalid, why);
}

}  // namespace

Expected<RsaKey> RsaKey::Parse(std::string_view pem) {
  std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                 &BIO_free);
  std::shared_ptr<EVP_PKEY> key(PEM_read_bio_PrivateKey(text.get(), nullptr, &NoPassPhrase, nullptr),
                                &EVP_PKEY_free);
  if (!key) return NoKey("expected a private RSA key as PEM text, without a pass phrase");
  if (EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA)
    return NoKey("expected a private RSA key, found one of another kind");
  return RsaKey(std::move(key));
}

std::string RsaKey::Sign(std::string_view text) const {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t length = 0;
  bool is_good = EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1 &&
                 EVP_DigestSign(context.get(), nullptr, &length, bytes, text.size()) == 1;
  std::string signature(length, '\0');
  is_good = is_good && EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                                      &length, bytes, text.size()) == 1;
  if (!is_good) throw Error(Verdict::kFail, "OpenSSL cannot sign with the RSA key");
  signature.resize(length);
  return signature;
}

std::string SignedToken(const RsaKey& key, std::string_view claims, std::string_view key_id) {
  boost::json::object header{{"alg", "RS256"}, {"typ", "JWT"}};
  if (!key_id.empty()) header["kid"] = key_id;
  std::string text = Base64Url(boost::json::serialize(header)) + "." + Base64Url(claims);
  return text + "." + Base64Url(key.Sign(text));
}

std::string Base64Url(std::string_view bytes) {
  std::string text = Base64(bytes);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return text;
}

Expected<std::string> FromBase64Url(std::string_view text) {
  std::string plain(text);
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  plain.append((4 - plain.size() % 4) % 4, '=');
  std::optional<std::string> bytes = FromBase64(plain);
  if (!bytes) return Unexpected(Verdict::kInvalid, "this is not base64url");
  return *bytes;
}

}  // namespace nodepool
