#include "zk/server/password.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/error.h"

namespace nodepool::zk::server {

std::string NewPassword() {
  std::string password(kPasswordSize, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(password.data()), kPasswordSize) != 1) {
    throw Error(Verdict::kFail, "the system gives no random numbers");
  }
  return password;
}

bool IsSameSecret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace nodepool::zk::server
