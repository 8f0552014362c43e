#include "base/text_hash.h"

#include <sodium/crypto_shorthash.h>

#include <bit>
#include <cstdint>

#include "base/password_hash.h"

namespace nodepool {
namespace {

const unsigned char* Key() {
  static const std::string key = SecretBytes(crypto_shorthash_KEYBYTES);
  return reinterpret_cast<const unsigned char*>(key.data());
}

}  // namespace

std::size_t HashText(std::string_view text) {
  std::uint64_t hash = 0;
  static_assert(sizeof(hash) == crypto_shorthash_BYTES);
  static const unsigned char* const key = Key();
  crypto_shorthash(reinterpret_cast<unsigned char*>(&hash),
                   reinterpret_cast<const unsigned char*>(text.data()), text.size(), key);
  return hash;
}

}  // namespace nodepool
