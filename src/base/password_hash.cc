#include "base/password_hash.h"

#include <argon2.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>
#include <charconv>
#include <optional>

#include "base/digest.h"
#include "base/encoding.h"
#include "base/error.h"
#include "base/text.h"

namespace nodepool {
namespace {

constexpr std::uint32_t kPasses = 2;
constexpr std::uint32_t kMemory = 19 * 1024;  // KiB
constexpr std::uint32_t kLanes = 1;
constexpr std::size_t kSaltBytes = 16;
constexpr std::size_t kHashBytes = 32;

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

std::string HashSecret(std::string_view secret) {
  std::string salt = SecretBytes(kSaltBytes);
  std::array<char, kMaxText> text{};
  int status = argon2id_hash_encoded(kPasses, kMemory, kLanes, secret.data(), secret.size(), salt.data(),
                                     salt.size(), kHashBytes, text.data(), text.size());
  if (status != ARGON2_OK)
    throw Error(Verdict::kFail, std::string("hashing a secret: ") + argon2_error_message(status));
  return text.data();
}

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

}  // namespace nodepool
