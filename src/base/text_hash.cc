#include "base/text_hash.h"

#include <sodium/crypto_shorthash.h>

#include <cstdint>

#include "base/password_hash.h"

namespace nodepool {

std::size_t HashText(std::string_view text) {
  // Never destroyed: the destructors of other static objects may need it.
  static const std::string& key = *new std::string(SecretBytes(crypto_shorthash_KEYBYTES));
  std::uint64_t hash = 0;
  static_assert(sizeof(hash) == crypto_shorthash_BYTES);
  crypto_shorthash(reinterpret_cast<unsigned char*>(&hash),
                   reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                   reinterpret_cast<const unsigned char*>(key.data()));
  return hash;
}

}  // namespace nodepool
